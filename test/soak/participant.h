// A process of a round: it takes part in the operations of the plan as the one that directs it says, and looks at every
// byte afterwards.
#pragma once

#include "link.h"
#include "plan.h"
#include "side.h"

#include "support/ucp.h"

#include <chrono>
#include <memory>

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
    };
    struct task; // an operation in which this process takes part

    bool is_dead(unsigned rank) const { return _peers[rank].is_dead; }
    unsigned other_of(const operation& planned) const { return planned.from == _rank ? planned.to : planned.from; }
    void connect();
    void run_step(unsigned number);
    void prepare(task& work);
    void start(task& work);
    void start_as_initiator(task& work);
    bool has_ended(task& work);
    void abandon(unsigned rank);
    void finish_all(unsigned number);
    void look(unsigned number);
    void expect_result(task& work);
    // Progresses until the director says so. Notes of other kinds are handled meanwhile.
    void wait_for(word what, unsigned number);
    void handle(const note& told);
    void turn();
    void fork_once() const;

    const round_plan& _plan;
    const unsigned _rank;
    const link _link;
    test::context _context;
    ucp_worker_h _worker;
    std::vector<peer> _peers;
    std::vector<std::unique_ptr<task>> _tasks, _abandoned;
    std::optional<note> _awaited;
    unsigned _num_addresses = 0;
};

} // namespace ucxl::soak
