// Two initiators of dynamic connections (DCI), `a` and `b` in different processes, and a target (DCT) of the second
// process.
#pragma once

#include "connected_pair.h"

namespace ucxl::softhca::test
{

inline constexpr std::uint64_t dc_access_key = 0x1122334455667788;

class dynamic_pair : public connected_pair
{
protected:
    explicit dynamic_pair(const fabric_options& options = {}) : connected_pair(qp_service::dci, options)
    {
        for (made_qp* const one : {&a, &b}) {
            one->record().receive.present = false;
        }
    }

    work_request to_target(wqe_opcode opcode) const
    {
        return work_request(opcode).target(there.lid(), there.number, dc_access_key).signaled();
    }

    work_request sent(std::uint32_t length) const
    {
        return to_target(wqe_opcode::send).data(source_key, address_of(source), length);
    }

    work_request written(std::uint32_t length) const
    {
        return to_target(wqe_opcode::rdma_write)
            .remote(address_of(target), target_key)
            .data(source_key, address_of(source), length);
    }

    // The initiator gives up: nobody answers. Its timer is 4.096 us << 14.
    void expect_no_answer(const work_request& request)
    {
        a.post(request);
        for (int i = 0; i <= 3; i++) {
            a.run();
            EXPECT_FALSE(a_sends.poll()) << "before the last retry";
            machine.advance(std::uint64_t{4096} << 14);
        }
        a.run();
        expect_error(a_sends.poll(), cqe_syndrome::transport_retry_exceeded);
        EXPECT_EQ(a.record().state, qp_state::error);
        EXPECT_TRUE(events(a).empty());
    }

    std::vector<prm::event_type> events(const made_target& dct) const
    {
        return connected_pair::events(103, dct.number);
    }
    using connected_pair::events;

    made_srq queue    = kit.shared_receive_queue(far);
    made_cq arrivals  = kit.completion_queue(far);
    made_target there = kit.target(far, arrivals, queue, dc_access_key);
};

} // namespace ucxl::softhca::test
