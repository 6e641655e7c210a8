// One line of the result: a pattern over one selection of transports. Plain data, because it lives in shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace examples
{

struct row {
    std::uint32_t pattern;   // index in all_patterns()
    std::uint32_t transport; // index in the selected transports
    std::size_t bytes, blocks;
    // Over the rounds: half round trips, and one put with its flush.
    double windows_s, packed_s, put_s; // medians
    double windows_min_s, packed_min_s, put_min_s;
    std::uint64_t copied_bytes; // through windows, by the CPUs of both processes
    bool verified;
    char problem[200]; // the error, if not verified
};

struct row_board {
    static constexpr unsigned max_rows = 1024;
    std::atomic<unsigned> count;
    row rows[max_rows];
};

} // namespace examples
