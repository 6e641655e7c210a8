// softhca_scenarios NAME [NUMBER]: one program that tests run with the device, see scenario.h.
#include "scenario.h"

#include "support/end_with_failure.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace
{

using namespace ucxl::softhca::test;

struct named {
    const char* name;
    int (*run)(int);
};

#define SCENARIO(function) {#function, function}

constexpr named scenarios[] = {
    SCENARIO(killed_peers),
    SCENARIO(killed),
    SCENARIO(initiator_outlives_targets),
    SCENARIO(fork_child_inherits_nothing),
    SCENARIO(fork_child_makes_its_own),
    SCENARIO(fork_child_closes_descriptors),
    SCENARIO(fork_child_opens_anew),
    SCENARIO(closes_descriptors_after_a_failed_exec),
    SCENARIO(clock_of_completions),
    SCENARIO(vfork_and_spawn),
    SCENARIO(execute_another_program),
    SCENARIO(exit_with_busy_threads),
    SCENARIO(exit_with_opening_threads),
    SCENARIO(exit_without_closing),
    SCENARIO(cancelled_thread),
    SCENARIO(outlives_its_main_thread),
    SCENARIO(close_all_descriptors),
    SCENARIO(unread_events),
    SCENARIO(events_that_wait_for_their_acknowledgement),
    SCENARIO(unread_completion_events),
    SCENARIO(unread_limit_events),
    SCENARIO(unread_events_behind_closed_descriptors),
    SCENARIO(events_read_by_threads),
    SCENARIO(port_bounces),
    SCENARIO(port_stays_down),
    SCENARIO(removed),
    SCENARIO(firmware_recovers),
    SCENARIO(completion_queue_overrun),
    SCENARIO(queue_pair_events),
    SCENARIO(path_migration_is_refused),
    SCENARIO(port_watcher),
    SCENARIO(own_fault_handler),
    SCENARIO(blocked_signals_and_direct_doorbells),
    SCENARIO(handler_that_posts),
    SCENARIO(local_libraries),
    SCENARIO(loopback),
    SCENARIO(completion_events),
};

} // namespace

int main(int argc, char** argv)
{
    std::set_terminate(ucxl::test::end_with_failure);
    for (const named& each : scenarios) {
        if (argc >= 2 && std::strcmp(argv[1], each.name) == 0) {
            return each.run(argc > 2 ? std::atoi(argv[2]) : 0);
        }
    }
    std::fprintf(stderr, "usage: softhca_scenarios NAME [NUMBER]\n");
    return 2;
}
