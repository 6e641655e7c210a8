// Several threads of several processes use the model at once; also for ThreadSanitizer. Memory that a program and the
// device share (queues, doorbell records, payload) has no lock on hardware. These threads access it under the machine's
// lock, so that a race that is found is one of the model's records.
#include "commander.h"
#include "invariants.h"
#include "key_maker.h"
#include "queue_kit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace ucxl::softhca::test
{
namespace
{

using prm::command;
using prm::command_status;
using prm::wqe_opcode;

constexpr unsigned threads_per_process = 2;
constexpr unsigned num_steps           = 300;

// Calls progress() of every process while it lives, as timers and polling programs do.
class busy_progress
{
public:
    explicit busy_progress(std::vector<test_process*> processes)
        : _thread([all = std::move(processes)](const std::stop_token& end) {
              while (!end.stop_requested()) {
                  for (test_process* const each : all) {
                      each->device().progress();
                  }
                  std::this_thread::yield();
              }
          })
    {
    }

private:
    std::jthread _thread;
};

// The commands of one thread. Mailboxes and their memory are made before, because the test's processes have no lock.
struct maker {
    explicit maker(test_process& process)
        : by(process, 0, 1), queues(by.qp_input()), key(by.key_input(by.alloc_pd(), process.allocate(64)))
    {
    }

    std::uint32_t queue_pair()
    {
        EXPECT_EQ(by.send(queues), command_status::ok);
        const std::uint32_t qpn = by.out<prm::create_qp_out>().get(prm::create_qp_out::qpn);
        by.connect(qpn, 1, qpn);
        return qpn;
    }

    std::uint32_t memory_key()
    {
        EXPECT_EQ(by.send(key), command_status::ok);
        return by.out<prm::create_mkey_out>().get(prm::create_mkey_out::mkey_index);
    }

    void make_and_end()
    {
        const std::uint32_t qpn   = queue_pair();
        const std::uint32_t index = memory_key();
        const std::uint32_t pd    = by.alloc_pd();
        EXPECT_EQ(by.plain(command::destroy_qp, qpn), command_status::ok);
        EXPECT_EQ(by.plain(command::destroy_mkey, index), command_status::ok);
        EXPECT_EQ(by.plain(command::dealloc_pd, pd), command_status::ok);
    }

    commander by;
    mailbox<prm::create_qp_in> queues;
    mailbox<prm::create_mkey_in> key;
};

TEST(model_threads, make_and_end_objects)
{
    test_machine machine;
    std::vector<test_process*> processes{&machine.start(), &machine.start()};
    std::deque<maker> makers;
    for (test_process* const each : processes) {
        for (unsigned i = 0; i < threads_per_process; ++i) {
            makers.emplace_back(*each);
        }
    }
    const std::uint64_t keys_before = machine.memory().mkeys.live;
    const std::uint64_t qps_before  = machine.memory().qps.live;
    {
        const busy_progress progress(processes);
        std::vector<std::jthread> threads;
        for (maker& each : makers) {
            threads.emplace_back([&each] {
                for (unsigned step = 0; step < num_steps; ++step) {
                    each.make_and_end();
                }
            });
        }
    }
    EXPECT_EQ(broken_invariants(machine.memory()), "");
    EXPECT_EQ(machine.memory().mkeys.live, keys_before);
    EXPECT_EQ(machine.memory().qps.live, qps_before);
}

// A queue pair of `process`, connected to one of `peer`, for one thread.
struct sender {
    sender(queue_kit& kit, test_process& process, test_process& peer)
        : cq(kit.completion_queue(process)), peer_cq(kit.completion_queue(peer)),
          qp(kit.queue_pair(process, {.send_cq = &cq, .receive_cq = &cq})),
          target(kit.queue_pair(peer, {.send_cq = &peer_cq, .receive_cq = &peer_cq}))
    {
        queue_kit::connect(qp, target);
    }

    // One request from posting to its CQE. Any thread of the process may execute it.
    void run(const work_request& request, std::uint32_t other_qpn)
    {
        {
            const std::lock_guard hold(*qp.process);
            qp.post(request);
        }
        qp.process->device().progress_queue_pair(other_qpn);
        qp.process->device().progress_queue_pair(qp.number);
        const std::lock_guard hold(*qp.process);
        const auto found = cq.poll();
        ASSERT_TRUE(found.has_value());
        EXPECT_FALSE(found->failed());
    }

    made_cq cq;
    made_cq peer_cq;
    made_qp qp;
    made_qp target;
};

TEST(model_threads, execute_requests_of_each_other)
{
    test_machine machine;
    queue_kit kit(machine);
    key_maker make(machine.memory());
    test_process& near           = machine.start();
    test_process& far            = machine.start();
    const std::span word         = far.allocate(8);
    const std::uint32_t word_key = make.direct(far.id(), word);
    std::deque<sender> senders;
    std::vector<work_request> requests;
    for (unsigned i = 0; i < 2 * threads_per_process; ++i) {
        senders.emplace_back(kit, near, far);
        const std::span before  = near.allocate(8);
        const std::uint32_t key = make.direct(near.id(), before);
        requests.push_back(work_request(wqe_opcode::atomic_fa)
                               .remote(address_of(word), word_key)
                               .fetch_add(1)
                               .data(key, address_of(before), 8)
                               .signaled());
    }
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < senders.size(); ++i) {
            const std::uint32_t other = senders[(i + 1) % senders.size()].qp.number;
            threads.emplace_back([&each = senders[i], &request = requests[i], other] {
                for (unsigned step = 0; step < num_steps; ++step) {
                    each.run(request, other);
                }
            });
        }
    }
    std::uint64_t sum = 0;
    std::memcpy(&sum, word.data(), sizeof(sum));
    EXPECT_EQ(sum, senders.size() * num_steps);
    EXPECT_EQ(machine.memory().counts.completions, senders.size() * num_steps);
}

} // namespace
} // namespace ucxl::softhca::test
