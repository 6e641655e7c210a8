// The send queue where its process has it: which WQEs were posted, and their bytes.
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
    // Room for whole blocks: the ring is read by blocks.
    static constexpr std::size_t capacity =
        (max_send_wqe_bytes + prm::wqe_block_bytes - 1) / prm::wqe_block_bytes * prm::wqe_block_bytes;

    posted_send() {} // not initialised: read_next_send() writes what it says is there

    unsigned blocks    = 0;
    std::size_t length = 0; // of the WQE; 0 where it has no valid length
    std::array<std::byte, capacity> bytes;

    std::span<std::byte> wqe() { return std::span(bytes).first(length); }
};

enum class posted : std::uint8_t {
    one,
    none,
    broken, // the ring is not there
    gone,   // its process is not there
};

// The next WQE to execute; the producer counter is read anew. A WQE that claims more blocks than were posted has those
// that were, and no length.
posted read_next_send(environment& device, qp_record& qp, posted_send& next);

// The same without the bytes behind the control segment.
posted read_next_send_control(environment& device, qp_record& qp, posted_send& next);

} // namespace ucxl::softhca
