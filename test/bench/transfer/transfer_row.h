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
// One process works in the memory of both; and the limit of that, within one process.
inline constexpr const char* by_put  = "put";
inline constexpr const char* by_get  = "get";
inline constexpr const char* by_copy = "copy";

struct transfer_row : row {
    family judged_as;
    bool to_strided;
};

using transfer_rows = std::vector<transfer_row>;

// A line each, as they come.
std::string transfer_head(const std::vector<std::string>& peers);
std::string transfer_line(const transfer_row& row, const std::vector<std::string>& peers);

// Put and get against what one process can copy.
std::string mapped_table(const transfer_rows& rows, const std::vector<std::string>& peers);

// The misses of each goal, and the geomeans.
std::string judge(const transfer_rows& rows, const std::vector<std::string>& peers);

} // namespace ucxl::bench
