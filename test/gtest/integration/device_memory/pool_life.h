// Everything a program does with a pool, once, on a device on which something fails.
#pragma once

namespace ucxl::test
{

// The result, as an exit status.
enum pool_life_result {
    pool_life_complete  = 0, // all calls succeeded and the bytes were right
    pool_life_refused   = 3, // an allocation failed twice; the pool was as before, and everything could be released
    pool_life_wrong     = 4, // wrong bytes after success, a pool that a failed call changed, or a leak: a defect
    pool_life_no_setup  = 5, // the test's own queue pairs or the domain could not be made
    pool_life_left      = 6, // all calls succeeded, but the device would not let an object go
    pool_life_recovered = 7, // as complete, but an allocation had to be asked for a second time
};

int pool_life();

} // namespace ucxl::test
