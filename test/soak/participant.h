// A process of a round: it takes part in the operations of the plan as the one that directs it says, and looks at every
// byte afterwards.
#pragma once

#include "link.h"
#include "plan.h"
#include "side.h"

#include "support/ucp.h"

#include <chrono>
#include <memory>

#include <sys/mman.h>

namespace ucxl::soak
{

class participant
{
public:
    participant(const round_plan& plan, unsigned rank, int descriptor);
    ~participant();
    participant(const participant&)            = delete;
    participant& operator=(const participant&) = delete;

    // Until the plan is done. Throws std::runtime_error if it cannot go on.
    void run();

private:
    struct peer {
        ucp_ep_h endpoint = nullptr;
        bool is_dead      = false;
        std::vector<std::byte> address{}; // of its worker
    };
    struct task;   // an operation in which this process takes part
    struct entry { // a context and its worker
        test::context context;
        ucp_worker_h worker;
        entry();
    };

    bool is_dead(unsigned rank) const { return _peers[rank].is_dead; }
    unsigned other_of(const operation& planned) const { return planned.from == _rank ? planned.to : planned.from; }
    // Both sides use the context of the same number.
    unsigned number_for(unsigned rank) const { return (_rank + rank) % _plan.num_contexts; }
    entry& entry_for(unsigned rank) const { return *_entries[number_for(rank)]; }
    entry& entry_for(const task& work) const;
    void progress() const;
    void connect();
    void become_short_of() const;
    void reserve();
    void release_reserve();
    void run_step(unsigned number);
    void prepare(task& work);
    void try_to_prepare(task& work);
    void start(task& work);
    void start_as_initiator(task& work);
    bool has_ended(task& work);
    bool can_stay_open(const task& work) const;
    void abandon(unsigned rank);
    void give_up(unsigned number);
    std::uint64_t ranks_heard_by_ucx_alone();
    void finish_all(unsigned number);
    void look(unsigned number);
    void expect_result(task& work);
    void expect_what_is_known(task& work);
    // Progresses until the director says so. Notes of other kinds are handled meanwhile.
    void wait_for(word what, unsigned number);
    void handle(const note& told);
    void turn();
    void fork_once() const;

    const round_plan& _plan;
    const unsigned _rank;
    const link _link;
    std::vector<std::unique_ptr<entry>> _entries;
    std::vector<peer> _peers;
    std::vector<std::unique_ptr<task>> _tasks, _abandoned;
    std::optional<note> _awaited;
    unsigned _num_addresses = 0;
    void* _reserved_memory  = MAP_FAILED;
    std::vector<int> _reserved_descriptors{};
};

} // namespace ucxl::soak
