// The scenarios of the test program softhca_scenarios, by name. Each returns the program's exit status; a failure
// throws, which ends the program with its message.
#pragma once

#include <infiniband/mlx5dv.h>

namespace ucxl::softhca::test
{

// The parts of a queue pair. From now on its doorbells trap.
mlx5dv_qp parts_of(ibv_qp* queue_pair);

int killed_peers(int rounds);
int killed(int with_its_parent);
int initiator_outlives_targets(int);

int fork_child_inherits_nothing(int);
int fork_child_makes_its_own(int);
int fork_child_closes_descriptors(int);
int fork_child_opens_anew(int);
int closes_descriptors_after_a_failed_exec(int);
int clock_of_completions(int);
int vfork_and_spawn(int);
int execute_another_program(int);
int exit_with_busy_threads(int);
int exit_with_opening_threads(int);
int exit_without_closing(int);
int cancelled_thread(int);
int outlives_its_main_thread(int);
int close_all_descriptors(int);

int unread_events(int);
int events_that_wait_for_their_acknowledgement(int);
int unread_completion_events(int);
int unread_limit_events(int);
int unread_events_behind_closed_descriptors(int);
int events_read_by_threads(int);

int port_bounces(int);
int port_stays_down(int);
int removed(int);
int firmware_recovers(int);
int completion_queue_overrun(int);
int queue_pair_events(int);
int path_migration_is_refused(int);
int port_watcher(int);

int own_fault_handler(int late);
int blocked_signals_and_direct_doorbells(int);
int handler_that_posts(int);
int local_libraries(int);
int loopback(int);
int completion_events(int);

} // namespace ucxl::softhca::test
