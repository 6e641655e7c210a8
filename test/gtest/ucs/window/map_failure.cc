#include "map_failure.h"

#include <cerrno>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

thread_local std::int64_t calls_left = -1;
thread_local bool takes_no_advice    = false;

} // namespace

namespace ucxl::test
{

void fail_map_after(std::int64_t calls)
{
    calls_left = calls;
}

void fail_advice(bool always)
{
    takes_no_advice = always;
}

} // namespace ucxl::test

// The program's definitions hide those of the C library.
extern "C" void* mmap(void* address, std::size_t length, int protection, int flags, int fd, off_t offset) noexcept
{
    if (calls_left >= 0 && calls_left-- == 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    // Not the system call: UCX has hooks in the C library's function, by which it tells what is unmapped.
    using function          = void* (*)(void*, std::size_t, int, int, int, off_t);
    static const auto stock = reinterpret_cast<function>(dlsym(RTLD_NEXT, "mmap"));
    return stock(address, length, protection, flags, fd, offset);
}

extern "C" int madvise(void* address, std::size_t length, int advice) noexcept
{
    if (takes_no_advice) {
        errno = EINVAL;
        return -1;
    }
    return static_cast<int>(syscall(SYS_madvise, address, length, advice));
}
