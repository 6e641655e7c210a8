// Two processes with a connected queue pair each, and memory with keys to send from and to.
#pragma once

#include <cstring>

#include <gtest/gtest.h>

#include "key_maker.h"
#include "prm/eq.h"
#include "queue_kit.h"

namespace ucxl::softhca::test
{

using prm::cqe_opcode;
using prm::cqe_syndrome;
using prm::qp_service;
using prm::qp_state;
using prm::wqe_opcode;

class connected_pair : public ::testing::Test
{
protected:
    explicit connected_pair(qp_service carried_by = qp_service::rc, const fabric_options& options = {})
        : machine(options), service(carried_by)
    {
        queue_kit::connect(a, b);
        for (std::size_t i = 0; i < source.size(); i++) {
            source[i] = static_cast<std::byte>(i * 7 + 1);
        }
    }

    work_request write(std::uint64_t offset, std::uint32_t length)
    {
        return work_request(wqe_opcode::rdma_write)
            .remote(address_of(target) + offset, target_key)
            .data(source_key, address_of(source) + offset, length)
            .signaled();
    }

    work_request send(std::uint32_t length)
    {
        return work_request(wqe_opcode::send).data(source_key, address_of(source), length).signaled();
    }

    receive_segment into(std::uint64_t offset, std::uint32_t length) const
    {
        return {target_key, address_of(target) + offset, length};
    }

    bool arrived(std::uint64_t to, std::uint64_t from, std::uint64_t length) const
    {
        return std::memcmp(target.data() + to, source.data() + from, length) == 0;
    }

    // The only CQE.
    polled only(made_cq& cq)
    {
        const auto found = cq.poll();
        EXPECT_TRUE(found.has_value()) << "no completion";
        EXPECT_FALSE(cq.poll().has_value()) << "more than one completion";
        return found.value_or(polled{});
    }

    void expect_error(const std::optional<polled>& found, cqe_syndrome syndrome)
    {
        ASSERT_TRUE(found.has_value()) << "no completion";
        EXPECT_TRUE(found->failed());
        EXPECT_EQ(found->syndrome(), syndrome);
    }

    // The events that a process got on that channel.
    std::vector<prm::event_type> events(std::int32_t channel, std::uint64_t object) const
    {
        std::vector<prm::event_type> told;
        for (const notification& one : machine.notifications) {
            if (one.route.channel == channel && one.route.value == object) {
                told.push_back(static_cast<prm::event_type>(one.type));
            }
        }
        return told;
    }

    std::vector<prm::event_type> events(const made_qp& qp) const { return events(103, qp.number); }

    test_machine machine;
    qp_service service;
    queue_kit kit{machine};
    key_maker make{machine.memory()};
    test_process& near = machine.start();
    test_process& far  = machine.start();

    std::span<std::byte> source = near.allocate(8192);
    std::span<std::byte> target = far.allocate(8192);
    std::uint32_t source_key    = make.direct(near.id(), source);
    std::uint32_t target_key    = make.direct(far.id(), target);

    made_cq a_sends    = kit.completion_queue(near);
    made_cq a_receives = kit.completion_queue(near);
    made_cq b_sends    = kit.completion_queue(far);
    made_cq b_receives = kit.completion_queue(far);
    made_qp a          = kit.queue_pair(near, {.send_cq = &a_sends, .receive_cq = &a_receives, .service = service});
    made_qp b          = kit.queue_pair(far, {.send_cq = &b_sends, .receive_cq = &b_receives, .service = service});
};

} // namespace ucxl::softhca::test
