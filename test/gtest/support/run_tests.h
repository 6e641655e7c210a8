// What main() of a test program does.
#pragma once

namespace ucxl::test
{

// Runs the tests. Says the seed first, and again after a failure; RapidCheck and processes that are started from here
// have the same one.
int run_tests(int argc, char** argv);

} // namespace ucxl::test
