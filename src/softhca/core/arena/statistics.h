// The counters of --stats: since the fabric was made, over all processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ucxl::softhca
{

inline constexpr std::size_t command_opcodes = 0xc00;
inline constexpr std::size_t wqe_opcodes     = 0x40;

struct statistics {
    std::array<std::uint64_t, command_opcodes> commands;        // by opcode
    std::array<std::uint64_t, command_opcodes> failed_commands; // answered with a status other than ok
    std::array<std::uint64_t, wqe_opcodes> wqes;                // executed, by opcode
    std::array<std::uint64_t, wqe_opcodes> failed_wqes;         // completed with an error
    std::uint64_t unknown_commands;                             // opcodes of 0xc00 and above
    std::uint64_t flushed_wqes;
    std::uint64_t completions;
    std::uint64_t error_completions;
    std::uint64_t completion_events;
    std::uint64_t async_events;
    std::uint64_t lost_events; // their channel was full and could not grow, or no descriptor was free to open it
    std::uint64_t doorbells;
    std::uint64_t rnr_waits;
    std::uint64_t transport_retries;
    std::uint64_t bytes_moved;
    std::uint64_t umr_inline_entries;
    std::uint64_t umr_pointer_entries;
    std::uint64_t translation_pieces; // pieces of memory found by walks through keys
    std::uint64_t keys_live;
    std::uint64_t keys_live_max;
    std::uint64_t keys_left; // not destroyed by their program before it closed the device file or ended
    std::uint64_t memic_used;
    std::uint64_t memic_used_max;
    std::uint64_t faults_injected;
    std::uint64_t clients_lost; // processes that ended without closing the device
};

} // namespace ucxl::softhca
