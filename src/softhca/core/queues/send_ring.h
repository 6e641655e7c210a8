// Reads posted WQEs from the send queue in the memory of its process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "queue_memory.h"
#include "send_request.h"

namespace ucxl::softhca
{

struct posted_send {
    // Room for whole blocks, because the ring is read in blocks.
    static constexpr std::size_t capacity =
        (longest_send_wqe_bytes + prm::wqe_block_bytes - 1) / prm::wqe_block_bytes * prm::wqe_block_bytes;

    posted_send() {} // not initialised: read_send() writes the bytes

    unsigned blocks    = 0;
    std::size_t length = 0; // of the WQE; 0 when it is not valid
    std::array<std::byte, capacity> bytes;

    std::span<std::byte> wqe() { return std::span(bytes).first(length); }
};

enum class posted : std::uint8_t {
    one,
    none,
    broken, // the ring is not mapped
    gone,   // its process has ended
};

// Reads the WQE that begins at block `at`, after reading the producer counter. A WQE that claims more blocks than were
// posted has the posted ones and length 0.
posted read_send(environment& device, qp_record& qp, std::uint16_t at, posted_send& next);

// The same without the bytes after the control segment.
posted read_send_control(environment& device, qp_record& qp, std::uint16_t at, posted_send& next);

} // namespace ucxl::softhca
