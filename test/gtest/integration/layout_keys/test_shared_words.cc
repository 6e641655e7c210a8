// Two processes add to one word of one of them: one process by a region, the other one by the plain key of the memory.
// The keys have other addresses. A card that locks addresses of keys may lose additions (docs/needs-hardware.md).
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "key_test.h"
#include "support/forked_process.h"

namespace ucxl::test
{
namespace
{

// What the two processes tell each other.
struct addition {
    std::atomic<std::uint32_t> adders_queue; // numbers of queue pairs
    std::atomic<std::uint32_t> owners_queue;
    std::atomic<std::uint32_t> rkey;
    std::atomic<std::uint64_t> address;
    std::atomic<std::uint64_t> times;
    std::atomic<bool> has_begun;
    std::atomic<bool> has_ended;
    std::atomic<std::uint64_t> added;
};

std::uint64_t add(verbs_pair& queues, std::uint64_t address, std::uint32_t rkey, std::uint64_t times)
{
    std::uint64_t result = 0;
    ibv_mr* const mr     = queues.registered(&result, sizeof(result));
    std::uint64_t added  = 0;
    while (added < times && queues.fetch_add({reinterpret_cast<std::uintptr_t>(&result), sizeof(result), mr->lkey},
                                             address, rkey, 1) == IBV_WC_SUCCESS) {
        ++added;
    }
    return added;
}

// Forked before this process has registered anything, because a copy of registered pages is of no use to a card.
class adding_process
{
protected:
    adding_process() : _child((open_once(), [this](forked_process& self) { run(self); })) {}

    // The card's memory, in the software device, is that of this process and of those it forks.
    static void open_once() { const verbs_pair opened; }

    void run(forked_process& self)
    {
        verbs_pair own;
        _shared.adders_queue = own.qp()->qp_num;
        self.ready();
        self.wait();
        own.connect_to(_shared.owners_queue);
        _shared.has_begun = true;
        _shared.added     = add(own, _shared.address, _shared.rkey, _shared.times);
        _shared.has_ended = true;
        self.wait(); // the other process may still use the queue pair
    }

    static bool comes(const std::atomic<bool>& event)
    {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
        while (!event && std::chrono::steady_clock::now() < deadline) {
        }
        return event;
    }

    addition& _shared = shared<addition>();
    forked_process _child;
};

class shared_words : private adding_process, public key_test
{
protected:
    addition& told() { return _shared; }

    void begin_adding() { _child.go_on(); }

    bool has_begun() { return comes(_shared.has_begun); }

    // Its exit status.
    int end_adding()
    {
        EXPECT_TRUE(comes(_shared.has_ended));
        _child.go_on();
        return _child.join();
    }
};

TEST_F(shared_words, lose_no_addition_of_two_processes_by_two_keys)
{
    need_atomics();
    if (IsSkipped()) {
        return;
    }
    constexpr std::uint64_t place = 0x7000'0000'0000; // another address than that of the plain key
    const auto memory             = zeroed(64);
    const ibv_sge piece           = memory->piece(0, 64);
    const auto region             = new_region(4, place);
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &piece), UCS_OK);
    const char* const wanted  = std::getenv("UCXL_TEST_KEY_ROUNDS");
    const std::uint64_t times = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 1000;

    verbs_pair toward_child(verbs_pair::beside{.home = pair});
    toward_child.connect_to(told().adders_queue);
    told().owners_queue = toward_child.qp()->qp_num;
    told().rkey         = memory->mr->rkey;
    told().address      = memory->address();
    told().times        = times;
    begin_adding();
    ASSERT_TRUE(has_begun());
    EXPECT_EQ(add(pair, place, about(region).rkey, times), times);
    EXPECT_EQ(end_adding(), 0);
    EXPECT_EQ(told().added.load(), times);
    std::uint64_t sum = 0;
    std::memcpy(&sum, memory->bytes.data(), sizeof(sum));
    RecordProperty("lost_additions", std::to_string(2 * times - sum));
    RecordProperty("locks_memory", (domain_flags() & UCT_MLX5_LAYOUT_CAP_ATOMIC_ANY_KEY) != 0 ? "yes" : "no");
    EXPECT_EQ(sum, 2 * times);
}

} // namespace
} // namespace ucxl::test
