// The stream channels of an initiator of dynamic connections (DCI).
//
// An error fails only the channel of its WQE: later WQEs of that channel are flushed in their turn, and the others are
// executed. When 2^log_errored channels are in error, the DCI fails as a whole. A reset makes a channel usable again
// (mlx5dv_dci_stream_id_reset(3)). A DCI without channels, and any other queue pair, fails at its first error.
//
// All channels share one order here: a WQE that waits for its target holds up the WQEs of other channels behind it.
#pragma once

#include <cstdint>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

struct executed_send;

// Numbers beyond the last channel start again at the first one.
inline std::uint64_t stream_bit(const qp_record& qp, std::uint16_t stream)
{
    return std::uint64_t{1} << (stream & ((1U << qp.dc.log_streams) - 1));
}

inline bool in_failed_stream(const qp_record& qp, std::uint16_t stream)
{
    return qp.dc.errored_streams != 0 && (qp.dc.errored_streams & stream_bit(qp, stream)) != 0;
}

// Completes a WQE of a channel in error, which was consumed.
void flush_in_stream(environment& device, const qp_record& qp, std::uint32_t qpn, const executed_send& sent);

// A WQE of the channel failed. Returns false when that fails the whole queue pair.
bool fail_stream(qp_record& qp, std::uint16_t stream);

// False when the channel is not in error.
bool reset_stream(qp_record& qp, std::uint16_t stream);

} // namespace ucxl::softhca
