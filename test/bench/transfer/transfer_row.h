// A row of `bench transfer`, and what is asked of it.
#pragma once

#include "bench/common/layout_case.h"
#include "bench/common/row.h"

namespace ucxl::bench
{

// One-way time of messages:
inline constexpr const char* by_window     = "window"; // over memory of the application
inline constexpr const char* by_mapped     = "mapped"; // over memory of the library
inline constexpr const char* by_contiguous = "contiguous";
inline constexpr const char* by_posix      = "posix contiguous";
// What stock UCP can do: a list of blocks, or bytes packed by hand.
inline constexpr const char* by_iov  = "ucp iov";
inline constexpr const char* by_hand = "ucp hand";
// No message at all: the program's own writing and reading.
inline constexpr const char* by_own_work = "own work";
// The limit of contiguous messages: a bare queue.
inline constexpr const char* by_contiguous_limit = "limit-contiguous";
// One process works in the memory of both; and the limit of that, within one process.
inline constexpr const char* by_put  = "put";
inline constexpr const char* by_get  = "get";
inline constexpr const char* by_copy = "copy";

// Behind the name of a method: with a list of blocks that nobody used before, each time.
inline constexpr const char* with_fresh_list = ", fresh list";

// Seconds for a few bytes of each page of a peer's memory, the first time and the second time.
struct first_use {
    std::size_t length = 0; // of the memory; 0: it was not measured
    double first = 0, again = 0;
};
std::string text_of(const first_use& use);

// From here on a window counts as no slower than the best peer.
inline constexpr double as_fast = 0.97;

enum class data_kind { live, same };

// "live data" or "the same data"; "one buffer" or "N buffers in turn".
std::string text_of(data_kind data);
std::string buffers_text(unsigned buffers);

struct transfer_row : row {
    family judged_as;
    bool to_strided;
    double round_trip = 0; // seconds of a cache line's way to the other core and back, before the row
};

// Cores that share a cache are nearer than this, others farther: some 60 ns against 370 on the machine that this was
// measured on.
inline constexpr double near_round_trip = 200e-9;

using transfer_rows = std::vector<transfer_row>;

// Which methods of a row are limited, and by what. Messages over memory of the application: by a queue, for neither
// process can reach the other one's. Messages over memory of the library: by a queue or by one pass, whichever takes
// less. Put and get: by one pass within one process.
std::vector<limited> transfer_limits();

// Windows lose to the best of these, or seem to.
bool is_below(const row& one, const std::vector<std::string>& peers);

// A line each, as they come.
std::string transfer_head(const std::vector<std::string>& peers, data_kind data, unsigned buffers = 1);
std::string transfer_line(const transfer_row& row, const std::vector<std::string>& peers);

// Put and get against what one process can copy.
std::string mapped_table(const transfer_rows& rows, const std::vector<std::string>& peers);

// How often rows were measured again, and what became of them.
std::string repeats_text(const transfer_rows& rows, const std::vector<std::string>& peers);

// What other processes took of the CPUs: of the whole run, and in how many rows it was too much.
std::string load_text(const transfer_rows& rows, std::optional<double> whole_run);

// The misses of each goal, how near to the limits all is, and the geomeans.
std::string judge(const transfer_rows& rows, const std::vector<std::string>& peers, data_kind data,
                  unsigned buffers = 1);

// "LAYOUT, fresh lists: ..." for the rows that have them, as a table; and "fresh lists: R", the geomean of the best
// peer's time / that of windows over shared memory. Empty and "-" without such rows.
std::string fresh_table(const transfer_rows& rows, const std::vector<std::string>& peers);
std::string judge_fresh(const transfer_rows& rows, const std::vector<std::string>& peers);

} // namespace ucxl::bench
