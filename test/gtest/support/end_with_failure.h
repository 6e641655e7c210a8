// For std::set_terminate in programs without GoogleTest: an exception that nobody catches ends the process with its
// message and status 1, without unwinding: what is under way stays so, and destroying what it uses would hide the
// failure behind another one.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <exception>

namespace ucxl::test
{

[[noreturn]] inline void end_with_failure()
{
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "FAILED in process %d: %s\n", getpid(), failure.what());
    } catch (...) {
        std::fprintf(stderr, "FAILED in process %d: unknown exception\n", getpid());
    }
    std::fflush(nullptr);
    _exit(1);
}

} // namespace ucxl::test
