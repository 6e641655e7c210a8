// Directs a round: starts its processes, passes on what they tell each other, disturbs them as the plan says, counts.
#pragma once

#include "link.h"
#include "plan.h"

#include "support/process.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace ucxl::soak
{

struct outcome {
    std::uint64_t operations = 0; // that were right
    unsigned left_out        = 0; // operations, by who is short of something
    unsigned kills           = 0;
    unsigned wrong           = 0; // bytes or statuses that were not right, and processes that ended by themselves
    unsigned hung            = 0;
    unsigned ended           = 0; // processes, by UCX: they answered or copied to a killed one, or had no memory
    unsigned blocked         = 0; // rounds that ended early: somebody was killed while it wrote into a queue of UCX
    unsigned as_bare         = 0; // jobs of MPI that are as wrong without the library
    unsigned unconnected     = 0; // processes, of the wrong ones, that UCX did not connect over cards
    unsigned reconnected     = 0; // rounds with such processes that were right when they ran once more
    unsigned left            = 0; // processes, files and parts of a device that stay after the round
    std::string told{};           // what was wrong

    bool is_good() const { return wrong == 0 && hung == 0 && left == 0; }
    bool is_only_unconnected() const { return wrong != 0 && wrong == unconnected && hung == 0 && left == 0; }
    void add_counts(const outcome& other);
};

class director
{
public:
    // program: what the processes run.
    director(const round_plan& plan, std::string program);
    // Does not throw.
    outcome run();

private:
    using time = std::chrono::steady_clock::time_point;
    struct performer {
        std::unique_ptr<test::process> process;
        std::optional<link> connection;
        bool is_dead          = false;
        std::uint64_t reached = 0;            // see place_of()
        std::optional<std::uint64_t> heard{}; // whom, by UCX alone
    };

    void start();
    void connect();
    void run_step(unsigned number);
    // Until all that live have said so.
    void gather(word what, unsigned number);
    bool are_stuck_in_ucx();
    void tell_all(const note& told);
    void take(performer& from, unsigned rank, const note& told);
    void pump();
    void disturb();
    void kill(unsigned rank);
    void count_end(unsigned rank, const test::ended_process& ended);
    void tell_dead(unsigned rank);
    unsigned num_alive() const;
    void finish();
    void count_left();

    const round_plan& _plan;
    const std::string _program;
    std::vector<performer> _performers;
    std::vector<note> _before_go; // of the step to come
    std::vector<note> _stuck;     // who told it
    outcome _outcome;
    unsigned _step = 0;
    std::optional<time> _disturb_at, _continue_at;
};

} // namespace ucxl::soak
