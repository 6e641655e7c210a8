// contended_fadd: several processes add 1 to one variable by fetch-and-add, as fast as they can. One more process owns
// the variable and compares its final value with the sum of what the others say that they added. Each value must have
// been fetched once; see word_account.h.
//
// The owner decides what happens. After the addresses of workers, each process gets the key of the variable and a task,
// waits until all are ready, and answers with its share.
#pragma once

#include "options.h"
#include "ucp_process.h"

#include <span>

namespace ucxl::perf
{

struct contention_task {
    std::uint32_t process; // number of the one that gets it
    std::uint32_t processes;
    std::uint32_t word_bytes;
    std::uint32_t outstanding;
    std::uint64_t operations; // 0: as many as take `seconds`
    double seconds;
};

struct contention_share {
    std::uint64_t operations;
    std::uint64_t fingerprints; // of the fetched values
    double seconds;
};

// Whether the variable can be right.
struct contention_verdict {
    std::uint64_t total;       // operations
    std::uint64_t final_value; // of the variable
    std::uint64_t expected;    // what it should be
    bool once_each;            // every value was fetched once

    bool is_right() const { return once_each && final_value == expected; }
};

contention_verdict judge(std::span<const contention_share> shares, std::size_t word_bytes, std::uint64_t value);

inline constexpr std::uint32_t default_processes = 4;

// Prints the result. Returns false if it is wrong.
bool own_variable(const options& options, std::span<oob_socket> processes);

// One of the processes that add.
void add_to_variable(const options& options, oob_socket& owner);

} // namespace ucxl::perf
