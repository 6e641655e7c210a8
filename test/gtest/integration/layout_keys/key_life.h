// Everything a program does with layout keys, once, on a device on which something fails.
#pragma once

namespace ucxl::test
{

// The result, as an exit status.
enum key_life_result {
    key_life_complete  = 0, // all calls succeeded and the bytes were right
    key_life_refused   = 3, // a call failed with a status; everything made before could be released
    key_life_wrong     = 4, // wrong bytes after success, or a leak: a defect
    key_life_no_setup  = 5, // the test's own queue pairs could not be made
    key_life_recovered = 7, // as complete, but a layout had to be set a second time
    key_life_left      = 6, // all calls succeeded, but the device would not let an object go
};

int key_life();

} // namespace ucxl::test
