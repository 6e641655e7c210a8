// What a report says of a datatype, as it is counted and measured.
//
// Thread safety: the caller's lock.
#pragma once

#include "type_facts.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ucxl::mpi
{

struct type_figures {
    std::string name;
    std::size_t length = 0, num_blocks = 0; // of the longest transfer
    std::uint64_t messages = 0, copies = 0, bytes = 0;
    std::uint64_t by_cpu = 0;            // bytes that the CPU moved through windows, as far as these have ended
    std::uint64_t left   = 0;            // transfers that MPI did
    std::string why_not;                 // the reason for the last one of these
    std::optional<double> seconds_saved; // none: not measured
    std::string constructor;
};

class type_statistics
{
public:
    // Names the datatype, and measures it.
    void describe(const type_facts& facts);

    void note_message(std::size_t length);
    void note_copy(std::size_t length);
    void note_by_cpu(std::uint64_t length) { _figures.by_cpu += length; }
    void note_why_not(const char* reason);

    // Without the longest transfer.
    type_figures figures() const;

private:
    // What a byte costs MPI beyond what it costs this library, in seconds; none: not measured.
    static std::optional<double> measured_saving(const type_facts& facts);

    type_figures _figures;
    const char* _why_not = nullptr;
    std::optional<double> _saved_per_byte;
};

} // namespace ucxl::mpi
