#include "dc_stream.h"

#include <bit>

#include "send_outcome.h"
#include "work_completion.h"

namespace ucxl::softhca
{

void flush_in_stream(environment& device, const qp_record& qp, std::uint32_t qpn, const executed_send& sent)
{
    device.memory.counts.flushed_wqes++;
    if (sent.told_of_flush) {
        (void)complete_failed_send(device, qp, qpn, sent.opcode, sent.index, prm::cqe_syndrome::flushed);
    }
}

bool fail_stream(qp_record& qp, std::uint16_t stream)
{
    if (qp.dc.log_streams == 0) {
        return false;
    }
    qp.dc.errored_streams |= stream_bit(qp, stream);
    return std::popcount(qp.dc.errored_streams) < 1 << qp.dc.log_errored;
}

bool reset_stream(qp_record& qp, std::uint16_t stream)
{
    const std::uint64_t bit = stream_bit(qp, stream);
    const bool failed       = (qp.dc.errored_streams & bit) != 0;
    qp.dc.errored_streams &= ~bit;
    return failed;
}

} // namespace ucxl::softhca
