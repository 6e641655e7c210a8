// A queue for binding keys that fails, and copies again, once, on a device on which something fails.
#pragma once

namespace ucxl::test
{

// The result, as an exit status.
enum queue_life_result {
    queue_life_complete = 0, // the bad copy was refused, and the good one worked
    queue_life_lost     = 3, // the same, but there was no new queue after the bad one
    queue_life_wrong    = 4, // the bad copy worked, or the good one did not: a defect
    queue_life_no_setup = 5, // there was no queue at all
};

int queue_life();

} // namespace ucxl::test
