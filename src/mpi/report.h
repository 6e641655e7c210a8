// UCX_LAYOUT_MPI_REPORT=y: a table of the datatypes that a process used, printed when MPI ends.
#pragma once

#include "known_type.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace ucxl::mpi
{

class report
{
public:
    // Counts from now on, if a report is wanted.
    static void start() noexcept;
    // A datatype that the program frees before MPI ends.
    static void note_end(known_type& type) noexcept;
    // Uses of a datatype that nothing is known of.
    static void note_unknown(unsigned uses) noexcept
    {
        if (_is_counting.load(std::memory_order_relaxed)) [[unlikely]] {
            _num_unknown.fetch_add(uses, std::memory_order_relaxed);
        }
    }
    // A put or a get that the library did (target_memory.h).
    static void note_done() noexcept
    {
        if (_is_counting.load(std::memory_order_relaxed)) [[unlikely]] {
            _num_done.fetch_add(1, std::memory_order_relaxed);
        }
    }
    static void print(const std::vector<known_type*>& types);
    // Nothing is taken in this process.
    static void print_nothing(const char* reason) noexcept;

private:
    static constinit inline std::atomic<bool> _is_counting{false};
    static constinit inline std::atomic<std::uint64_t> _num_unknown{0}, _num_done{0};
};

} // namespace ucxl::mpi
