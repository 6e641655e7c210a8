// The adversarial order: what it may do happens with some seed, what it may not do happens with none, and nothing is
// lost.
#include "connected_pair.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "softhca/core/queues/adversarial_order.h"
#include "softhca/core/queues/completion.h"
#include "softhca/core/queues/piece_order.h"
#include "umr_request_maker.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::wqe_fence;

constexpr std::uint64_t seeds = 300;

std::vector<std::byte> with_fence(std::vector<std::byte> wqe, wqe_fence fence)
{
    (void)prm::view<prm::wqe_control_segment>::over(wqe)->set(prm::wqe_control_segment::fence, fence);
    return wqe;
}

class adversarial : public connected_pair
{
protected:
    // Everything that follows is chosen by that seed.
    void choose(std::uint64_t seed)
    {
        order = std::make_unique<adversarial_order>(seed);
        for (made_qp* qp : {&a, &b, &c, &d}) {
            qp->order = order.get();
        }
    }

    void pass(made_qp& qp)
    {
        qp.run();
        machine.time_ns += 100'000;
    }

    // Runs both queues of the process until they have completed that many requests.
    std::vector<polled> complete(std::size_t count)
    {
        std::vector<polled> all;
        for (unsigned looks = 0; looks < 10'000 && all.size() < count; looks++) {
            pass(a);
            pass(c);
            for (made_cq* cq : {&a_sends, &c_sends}) {
                const auto found = cq->poll_all();
                all.insert(all.end(), found.begin(), found.end());
            }
        }
        EXPECT_EQ(all.size(), count);
        return all;
    }

    // The receiver's completions may come after those of the sender.
    void expect_received(std::size_t count)
    {
        std::size_t found = 0;
        for (unsigned looks = 0; looks < 1000 && found < count; looks++) {
            found += b_receives.poll_all().size();
            pass(a);
        }
        EXPECT_EQ(found, count);
    }

    // With how many seeds it happens.
    std::uint64_t times(const std::function<bool()>& happens)
    {
        std::uint64_t counted = 0;
        for (std::uint64_t seed = 0; seed < seeds; seed++) {
            choose(seed);
            counted += happens() ? 1 : 0;
        }
        return counted;
    }

    work_request read(std::uint64_t into, std::uint64_t from, std::uint32_t length)
    {
        return work_request(wqe_opcode::rdma_read)
            .remote(address_of(target) + from, target_key)
            .data(source_key, address_of(source) + into, length)
            .signaled();
    }

    work_request write_of(std::byte value, std::uint64_t to, std::uint32_t length, std::uint32_t key)
    {
        const auto bytes = values.subspan(std::to_integer<std::size_t>(value) * 64, 64);
        std::ranges::fill(bytes, value);
        return work_request(wqe_opcode::rdma_write)
            .remote(address_of(target) + to, key)
            .data(values_key, address_of(bytes), length)
            .signaled();
    }

    // The peer has no such key.
    work_request refused(wqe_opcode opcode)
    {
        return work_request(opcode).remote(address_of(target), 0x77777700).data(source_key, address_of(source), 8);
    }

    // Binds the list key to eight bytes of the source at that place.
    std::vector<std::byte> bind(std::uint64_t place, wqe_fence fence = wqe_fence::none)
    {
        auto wqe = umr_request_maker(list, a.number)
                       .free(false)
                       .len(8)
                       .access(true, true, true, true)
                       .entries({klm(8, source_key, address_of(source) + place)})
                       .bytes();
        prm::view<prm::wqe_control_segment>::over(wqe)->put<prm::wqe_completion::always>(
            prm::wqe_control_segment::completion);
        return with_fence(wqe, fence);
    }

    work_request write_through_list(std::uint64_t to)
    {
        return work_request(wqe_opcode::rdma_write)
            .remote(address_of(target) + to, target_key)
            .data(list, 0, 8)
            .signaled();
    }

    void unbind() { make.record(list).free = true; }

    // After an error, as a program reconnects.
    void reconnect()
    {
        for (made_qp* qp : {&a, &b, &c, &d}) {
            qp_record& record   = qp->record();
            record.state        = qp_state::rts;
            record.send.psn     = 0;
            record.expected_psn = 0;
        }
    }

    // Uses the list key on the other queue while the first one changes it, or when that has completed.
    bool other_queue_fails(bool waits)
    {
        if (waits) {
            complete(1);
        } else {
            pass(a);
        }
        c.post(write_through_list(0));
        const bool failed = std::ranges::any_of(complete(waits ? 1 : 2), &polled::failed);
        if (failed) {
            reconnect();
        }
        return failed;
    }

    std::span<std::byte> values = near.allocate(256 * 64);
    std::uint32_t values_key    = make.direct(near.id(), values);
    std::uint32_t list          = make.empty(prm::mkey_access_mode::klm, 8);
    made_cq c_sends             = kit.completion_queue(near);
    made_cq d_receives          = kit.completion_queue(far);
    made_qp c                   = kit.queue_pair(near, {.send_cq = &c_sends, .receive_cq = &c_sends});
    made_qp d                   = kit.queue_pair(far, {.send_cq = &d_receives, .receive_cq = &d_receives});
    std::unique_ptr<adversarial_order> order;

    adversarial() { queue_kit::connect(c, d); }
};

TEST_F(adversarial, completions_come_in_order_and_with_all_data)
{
    for (std::uint64_t seed = 0; seed < seeds; seed++) {
        SCOPED_TRACE(seed);
        choose(seed);
        std::ranges::fill(target.first(4096), std::byte{0});
        std::ranges::fill(source.subspan(4096), std::byte{0});
        std::vector<std::uint16_t> posted;
        for (std::uint64_t i = 0; i < 4; i++) {
            b.post_receive(into(1024 * i + 512, 512));
            posted.push_back(a.post(write(1024 * i, 500)));
            posted.push_back(a.post(read(4096 + 8 * i, 4096 + 8 * i, 8)));
            posted.push_back(a.post(send(300)));
        }
        std::size_t done = 0;
        for (unsigned looks = 0; looks < 10'000 && done < posted.size(); looks++) {
            pass(a);
            while (const auto one = a_sends.poll()) {
                ASSERT_FALSE(one->failed());
                ASSERT_EQ(one->counter(), posted[done]);
                const std::uint64_t i = done / 3;
                if (done % 3 == 0) {
                    EXPECT_TRUE(arrived(1024 * i, 1024 * i, 500));
                } else if (done % 3 == 1) {
                    EXPECT_EQ(source[4096 + 8 * i], target[4096 + 8 * i]);
                } else {
                    EXPECT_TRUE(arrived(1024 * i + 512, 0, 300));
                }
                done++;
            }
        }
        ASSERT_EQ(done, posted.size());
        EXPECT_EQ(a.record().send.in_flight, 0u);
        expect_received(4);
    }
}

TEST_F(adversarial, a_write_passes_a_read_unless_it_has_a_fence)
{
    const auto read_sees_the_write = [&](made_qp& qp, wqe_fence fence) {
        target[0] = std::byte{1};
        source[0] = std::byte{0};
        qp.post(read(0, 0, 1));
        qp.post(write_of(std::byte{2}, 0, 1, target_key).fence(fence));
        complete(2);
        EXPECT_EQ(target[0], std::byte{2});
        return source[0] == std::byte{2};
    };
    EXPECT_GT(times([&] { return read_sees_the_write(a, wqe_fence::none); }), seeds / 20);
    EXPECT_GT(times([&] { return read_sees_the_write(a, wqe_fence::initiator_small); }), seeds / 20);
    for (const wqe_fence fence : {wqe_fence::full, wqe_fence::strong_ordering, wqe_fence::small_and_full}) {
        EXPECT_EQ(times([&] { return read_sees_the_write(a, fence); }), 0u);
    }
}

TEST_F(adversarial, a_send_passes_the_read_of_its_data_unless_it_has_a_fence)
{
    const auto sends_old_data = [&](wqe_fence fence) {
        target[0]    = std::byte{9};
        target[4000] = std::byte{0};
        source[0]    = std::byte{1};
        b.post_receive(into(4000, 1));
        a.post(read(0, 0, 1));
        a.post(send(1).fence(fence));
        complete(2);
        expect_received(1);
        return target[4000] == std::byte{1};
    };
    EXPECT_GT(times([&] { return sends_old_data(wqe_fence::none); }), seeds / 20);
    EXPECT_EQ(times([&] { return sends_old_data(wqe_fence::small_and_full); }), 0u);
}

TEST_F(adversarial, a_read_does_not_pass_a_write)
{
    EXPECT_EQ(times([&] {
                  target[0] = std::byte{1};
                  a.post(write_of(std::byte{2}, 0, 1, target_key));
                  a.post(read(0, 0, 1));
                  complete(2);
                  return source[0] != std::byte{2};
              }),
              0u);
}

TEST_F(adversarial, a_key_is_used_before_its_bind_unless_there_is_a_small_fence)
{
    const auto fails = [&](wqe_fence fence) {
        unbind();
        a.post(bind(0));
        a.post(write_through_list(0).fence(fence));
        const auto found  = complete(2);
        const bool failed = found.back().failed();
        if (failed) {
            EXPECT_EQ(found.back().syndrome(), cqe_syndrome::local_protection);
            reconnect();
        }
        return failed;
    };
    EXPECT_GT(times([&] { return fails(wqe_fence::none); }), seeds / 20);
    EXPECT_GT(times([&] { return fails(wqe_fence::full); }), seeds / 20);
    for (const wqe_fence fence : {wqe_fence::initiator_small, wqe_fence::strong_ordering, wqe_fence::small_and_full}) {
        EXPECT_EQ(times([&] { return fails(fence); }), 0u);
    }
}

TEST_F(adversarial, a_key_change_passes_another_one_unless_it_has_the_fence_of_the_card)
{
    const auto bound_last = [&](wqe_fence fence) {
        unbind();
        a.post(bind(0));
        a.post(with_fence(umr_request_maker(list, a.number).free(true).bytes(), fence));
        const bool is_free = [&] {
            a.post(work_request(wqe_opcode::nop).fence(wqe_fence::initiator_small).signaled());
            complete(2);
            return make.record(list).free;
        }();
        return !is_free;
    };
    using prm::umr_fence_kind;
    const auto passes = [&](umr_fence_kind needed, wqe_fence fence) {
        machine.memory().card.umr_fence = needed;
        return times([&] { return bound_last(fence); }) != 0;
    };
    EXPECT_TRUE(passes(umr_fence_kind::small, wqe_fence::none));
    EXPECT_FALSE(passes(umr_fence_kind::small, wqe_fence::initiator_small));
    EXPECT_TRUE(passes(umr_fence_kind::strong, wqe_fence::initiator_small) &&
                passes(umr_fence_kind::strong, wqe_fence::none));
    EXPECT_FALSE(passes(umr_fence_kind::strong, wqe_fence::strong_ordering));
    EXPECT_FALSE(passes(umr_fence_kind::none, wqe_fence::none));
}

TEST_F(adversarial, another_queue_sees_a_bind_only_when_it_has_completed)
{
    const auto fails = [&](bool waits) {
        unbind();
        a.post(bind(0));
        return other_queue_fails(waits);
    };
    EXPECT_GT(times([&] { return fails(false); }), seeds / 20);
    EXPECT_EQ(times([&] { return fails(true); }), 0u);
}

TEST_F(adversarial, an_invalidated_key_works_until_the_completion)
{
    const auto works = [&](bool waits) {
        unbind();
        a.post(bind(0));
        complete(1);
        auto invalidation = umr_request_maker(list, a.number).free(true).bytes();
        prm::view<prm::wqe_control_segment>::over(invalidation)
            ->put<prm::wqe_completion::always>(prm::wqe_control_segment::completion);
        a.post(invalidation);
        return !other_queue_fails(waits);
    };
    EXPECT_GT(times([&] { return works(false); }), seeds / 20);
    EXPECT_EQ(times([&] { return works(true); }), 0u);
}

TEST_F(adversarial, writes_pass_writes_if_the_key_is_relaxed)
{
    const auto first_wins = [&] {
        a.post(write_of(std::byte{1}, 0, 64, target_key));
        a.post(write_of(std::byte{2}, 0, 64, target_key));
        complete(2);
        const bool seen = target[0] == std::byte{1};
        EXPECT_TRUE(target[0] == std::byte{1} || target[0] == std::byte{2});
        return seen;
    };
    EXPECT_EQ(times(first_wins), 0u);
    make.record(target_key).relaxed_writes = true;
    EXPECT_GT(times(first_wins), seeds / 20);
}

TEST_F(adversarial, a_completion_at_the_receiver_shows_relaxed_writes_before_it)
{
    make.record(target_key).relaxed_writes = true;
    EXPECT_EQ(times([&] {
                  std::ranges::fill(target.first(500), std::byte{0});
                  b.post_receive(into(4000, 8));
                  a.post(write(0, 500));
                  a.post(send(8));
                  bool missing = false;
                  for (unsigned looks = 0; looks < 10'000; looks++) {
                      pass(a);
                      if (b_receives.poll()) {
                          missing = !arrived(0, 0, 500);
                          break;
                      }
                  }
                  complete(2);
                  return missing;
              }),
              0u);
}

TEST_F(adversarial, the_last_byte_of_a_message_may_land_first)
{
    EXPECT_GT(times([&] {
                  std::ranges::fill(target.first(512), std::byte{0});
                  source[511] = std::byte{7};
                  source[0]   = std::byte{7};
                  a.post(write(0, 512));
                  bool early = false;
                  while (!a_sends.poll()) {
                      early = early || (target[511] == std::byte{7} && target[0] == std::byte{0});
                      pass(a);
                  }
                  EXPECT_TRUE(arrived(0, 0, 512));
                  return early;
              }),
              seeds / 20);
}

TEST_F(adversarial, queues_complete_in_any_order)
{
    EXPECT_GT(times([&] {
                  a.post(write(0, 8));
                  c.post(write(8, 8));
                  const auto all = complete(2);
                  return all.front().qpn() == c.number;
              }),
              seeds / 20);
}

TEST_F(adversarial, a_sender_may_know_before_the_receiver)
{
    EXPECT_GT(times([&] {
                  b.post_receive(into(0, 8));
                  a.post(send(8));
                  complete(1);
                  const bool later = !b_receives.poll().has_value();
                  expect_received(later ? 1 : 0);
                  return later;
              }),
              seeds / 20);
}

TEST_F(adversarial, a_completion_held_back_is_written_before_anything_can_miss_it)
{
    for (std::uint64_t seed = 0; seed < seeds; seed++) {
        SCOPED_TRACE(seed);
        choose(seed);
        b.post_receive(into(0, 8));
        a.post(send(8));
        complete(1);
        if (seed % 3 == 0) { // armed for an event
            const std::size_t before = machine.notifications.size();
            b_receives.arm(static_cast<std::uint8_t>(seed & 3));
            EXPECT_GT(machine.notifications.size(), before);
        } else if (seed % 3 == 1) { // its queue pair fails, and completes another receive
            b.post_receive(into(0, 8));
            environment other = b.device();
            fail_queue_pair(other, b.number);
            reconnect();
            EXPECT_FALSE(b_receives.poll()->failed());
        } else { // its process looks, and the sender has ended
            for (unsigned looks = 0; looks < 50; looks++) {
                pass(b);
            }
        }
        EXPECT_EQ(b_receives.poll_all().size(), 1u);
        EXPECT_FALSE(b_receives.record().holds);
    }
}

// The owner looks for it in the old buffer, and the queue has the new one when the command returns.
TEST_F(adversarial, the_marker_of_a_resize_is_never_held_back)
{
    for (std::uint64_t seed = 0; seed < seeds; seed++) {
        choose(seed);
        completion marker;
        (*marker.entry).put<cqe_opcode::resize_cq>(prm::cqe64::opcode);
        environment device = a.device();
        ASSERT_TRUE(ucxl::softhca::complete(device, a_sends.number, marker));
        ASSERT_FALSE(a_sends.record().holds) << seed;
        a_sends.poll_all();
    }
}

TEST_F(adversarial, a_doorbell_may_be_noticed_late)
{
    EXPECT_GT(times([&] {
                  const std::uint64_t before = machine.memory().counts.bytes_moved;
                  a.post(write(0, 8));
                  pass(a);
                  const bool late = machine.memory().counts.bytes_moved == before;
                  complete(1);
                  return late;
              }),
              seeds / 20);
}

TEST_F(adversarial, a_receiver_may_not_be_ready_at_first)
{
    a.record().rnr_retry  = 7;
    const auto is_refused = [&] {
        const std::uint64_t before = machine.memory().counts.rnr_waits;
        b.post_receive(into(0, 8));
        a.post(send(8));
        EXPECT_FALSE(complete(1).front().failed());
        expect_received(1);
        return machine.memory().counts.rnr_waits != before;
    };
    EXPECT_GT(times(is_refused), seeds / 20);
    a.record().rnr_retry = 6;
    EXPECT_EQ(times(is_refused), 0u);
}

TEST_F(adversarial, what_is_behind_an_error_is_flushed_but_may_have_been_executed)
{
    EXPECT_GT(times([&] {
                  target[100] = std::byte{0};
                  a.post(write(0, 8));
                  a.post(refused(wqe_opcode::rdma_read));
                  a.post(write_of(std::byte{5}, 100, 1, target_key));
                  const auto all = complete(3);
                  EXPECT_FALSE(all[0].failed());
                  EXPECT_EQ(all[1].syndrome(), cqe_syndrome::remote_access);
                  EXPECT_EQ(all[2].syndrome(), cqe_syndrome::flushed);
                  EXPECT_EQ(b.record().state, qp_state::error);
                  reconnect();
                  return target[100] == std::byte{5};
              }),
              seeds / 20);
}

TEST_F(adversarial, requests_before_an_error_are_executed)
{
    EXPECT_EQ(times([&] {
                  source[4096] = std::byte{0};
                  target[4096] = std::byte{3};
                  a.post(read(4096, 4096, 1));
                  a.post(refused(wqe_opcode::rdma_write));
                  const auto all = complete(2);
                  EXPECT_EQ(all[1].syndrome(), cqe_syndrome::remote_access);
                  reconnect();
                  return all[0].failed() || source[4096] != std::byte{3};
              }),
              0u);
}

TEST_F(adversarial, a_failure_from_outside_flushes_what_is_in_flight)
{
    for (std::uint64_t seed = 0; seed < seeds; seed++) {
        SCOPED_TRACE(seed);
        choose(seed);
        std::vector<std::uint16_t> posted;
        for (unsigned i = 0; i < 6; i++) {
            posted.push_back(a.post(i % 2 == 0 ? read(0, 0, 8) : write(0, 8)));
        }
        pass(a);
        pass(a);
        environment other = b.device();
        fail_queue_pair(other, a.number);
        const auto all = a_sends.poll_all();
        ASSERT_EQ(all.size(), posted.size());
        bool flushed = false;
        for (std::size_t i = 0; i < all.size(); i++) {
            EXPECT_EQ(all[i].counter(), posted[i]);
            EXPECT_TRUE(all[i].failed() || !flushed);
            flushed = all[i].failed();
        }
        pass(a);
        EXPECT_FALSE(a_sends.poll().has_value());
        EXPECT_EQ(a.record().send.in_flight, 0u);
        reconnect();
    }
}

TEST_F(adversarial, a_reset_drops_what_is_in_flight)
{
    for (std::uint64_t seed = 0; seed < seeds; seed++) {
        SCOPED_TRACE(seed);
        choose(seed);
        a.post(read(0, 0, 8));
        a.post(write_of(std::byte{1}, 0, 1, target_key));
        pass(a);
        pass(a);
        qp_record& record       = a.record();
        const std::uint32_t psn = b.record().expected_psn;
        record.send     = {.log_size = record.send.log_size, .present = true, .offset = record.send.offset, .psn = psn};
        a.produced      = 0;
        environment own = a.device();
        release_completion(own, a_sends.number); // as the command does
        (void)a_sends.poll_all();
        const std::uint16_t first = a.post(write_of(std::byte{2}, 0, 1, target_key));
        const auto all            = complete(1);
        EXPECT_EQ(all.front().counter(), first);
        EXPECT_FALSE(all.front().failed());
        EXPECT_EQ(target[0], std::byte{2});
        pass(a);
        EXPECT_FALSE(a_sends.poll().has_value());
    }
}

// UCX resets an initiator of dynamic connections and leaves its doorbell record alone.
TEST_F(adversarial, a_doorbell_record_from_before_a_reset_posts_nothing)
{
    choose(1);
    a.post(write_of(std::byte{1}, 0, 1, target_key));
    a.post(write_of(std::byte{1}, 0, 1, target_key));
    (void)complete(2);
    qp_record& record = a.record();
    record.send       = {.log_size      = record.send.log_size,
                         .present       = true,
                         .is_record_old = true,
                         .old_record    = record.send.rung,
                         .offset        = record.send.offset,
                         .psn           = b.record().expected_psn};
    for (int i = 0; i < 20; i++) {
        pass(a);
    }
    EXPECT_FALSE(a_sends.poll().has_value());
    EXPECT_EQ(record.state, qp_state::rts);
    a.produced                = 0;
    const std::uint16_t first = a.post(write_of(std::byte{2}, 0, 1, target_key));
    EXPECT_EQ(complete(1).front().counter(), first);
    EXPECT_EQ(target[0], std::byte{2});
}

TEST_F(adversarial, a_key_destroyed_in_flight_is_missing)
{
    EXPECT_GT(times([&] {
                  const std::uint32_t key = make.direct(far.id(), target);
                  a.post(write_of(std::byte{1}, 0, 1, key));
                  pass(a);
                  make.destroy(key);
                  const auto all = complete(1);
                  if (all.front().failed()) {
                      reconnect();
                  }
                  return all.front().failed();
              }),
              seeds / 20);
}

TEST_F(adversarial, an_alias_whose_target_is_destroyed_in_flight_is_missing)
{
    EXPECT_GT(times([&] {
                  const std::uint32_t key   = make.direct(near.id(), source);
                  const std::uint32_t alias = make.alias(key, 0, make.pd);
                  a.post(work_request(wqe_opcode::rdma_write)
                             .remote(address_of(target), target_key)
                             .data(alias, address_of(source), 8)
                             .signaled());
                  pass(a);
                  make.destroy(key);
                  const auto all = complete(1);
                  make.destroy(alias);
                  if (all.front().failed()) {
                      EXPECT_EQ(all.front().syndrome(), cqe_syndrome::local_protection);
                      reconnect();
                  }
                  return all.front().failed();
              }),
              seeds / 20);
}

TEST_F(adversarial, everything_happens_without_a_poll)
{
    a.record().rnr_retry = c.record().rnr_retry = 7;
    for (std::uint64_t seed = 0; seed < seeds; seed++) {
        SCOPED_TRACE(seed);
        choose(seed);
        for (made_qp* qp : {&b, &d}) {
            qp->post_receive(into(0, 8));
        }
        for (made_qp* qp : {&a, &c}) {
            qp->post(read(0, 0, 8));
            qp->post(send(8));
            qp->run();
        }
        for (unsigned calls = 0; calls < 1000 && near.woken_at_ns != UINT64_MAX; calls++) {
            machine.time_ns  = std::max(machine.time_ns, near.woken_at_ns);
            near.woken_at_ns = UINT64_MAX;
            // So that the two queues wait for different times, sometimes the one, sometimes the other for longer.
            (calls % 2 == 0 ? a : c).run();
            machine.time_ns += 7'000;
            (calls % 2 == 0 ? c : a).run();
        }
        EXPECT_EQ(a_sends.poll_all().size(), 2u);
        EXPECT_EQ(c_sends.poll_all().size(), 2u);
        EXPECT_EQ(b_receives.poll_all().size(), 1u);
        EXPECT_EQ(d_receives.poll_all().size(), 1u);
    }
}

TEST_F(adversarial, queues_without_a_place_wait_for_one)
{
    choose(1);
    std::vector<made_qp> many;
    std::vector<made_cq> queues;
    queues.reserve(600);
    for (unsigned i = 0; i < 600; i++) {
        made_cq& cq = queues.emplace_back(kit.completion_queue(near, 1));
        made_qp qp  = kit.queue_pair(near, {.send_cq = &cq, .receive_cq = &cq, .log_sends = 1, .log_receives = 1});
        queue_kit::connect(qp, d);
        qp.order = order.get();
        qp.post(work_request(wqe_opcode::nop).signaled());
        many.push_back(qp);
    }
    std::size_t done = 0;
    for (unsigned looks = 0; looks < 1000 && done < many.size(); looks++) {
        for (made_qp& qp : many) {
            pass(qp);
        }
        for (made_cq& cq : queues) {
            done += cq.poll_all().size();
        }
    }
    EXPECT_EQ(done, many.size());
}

TEST(adversarial_seed, decides_everything)
{
    const auto trace_of = [](std::uint64_t seed) {
        class run : public adversarial
        {
        public:
            void TestBody() override {}

            std::string trace(std::uint64_t seed)
            {
                near.trace_wanted = true;
                choose(seed);
                for (unsigned i = 0; i < 5; i++) {
                    a.post(read(8 * i, 0, 8));
                    a.post(write(8 * i, 8));
                }
                complete(10);
                return near.traced;
            }
        };
        // Without the lines that name addresses, which differ from machine to machine.
        std::istringstream text(run().trace(seed));
        std::string kept;
        for (std::string line; std::getline(text, line);) {
            kept += line.starts_with("  control:") || line.starts_with("  completion:") ? line + '\n' : "";
        }
        return kept;
    };
    EXPECT_EQ(trace_of(5), trace_of(5));
    EXPECT_NE(trace_of(5), trace_of(6));
    EXPECT_FALSE(trace_of(5).empty());
}

TEST(piece_order, covers_every_byte_and_repeats_only_reads)
{
    bool repeated = false;
    for (std::uint64_t seed = 0; seed < seeds; seed++) {
        for (const std::uint64_t length : {0UL, 1UL, 2UL, 3UL, 5UL, 64UL, 1000UL, 20UL << 20}) {
            const piece_order once(seed, length, false);
            std::vector<piece_order::part> parts;
            for (std::uint64_t i = 0; i < once.count(); i++) {
                parts.push_back(once[i]);
            }
            std::ranges::sort(parts, {}, &piece_order::part::begin);
            std::uint64_t end = 0;
            for (const piece_order::part& part : parts) {
                ASSERT_EQ(part.begin, end);
                ASSERT_TRUE(part.end > part.begin || length == 0);
                end = part.end;
            }
            ASSERT_EQ(end, length);
            const piece_order again(seed, length, true);
            ASSERT_GE(again.count(), once.count());
            ASSERT_LE(again.count(), 2 * once.count());
            repeated = repeated || again.count() > once.count();
        }
    }
    EXPECT_TRUE(repeated);
}

} // namespace

} // namespace ucxl::softhca::test
