#include "map_failure.h"

#include <cerrno>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

thread_local std::int64_t calls_left = -1;

} // namespace

namespace ucxl::test
{

void fail_map_after(std::int64_t calls)
{
    calls_left = calls;
}

} // namespace ucxl::test

// The program's definition hides that of the C library.
extern "C" void* mmap(void* address, std::size_t length, int protection, int flags, int fd, off_t offset) noexcept
{
    if (calls_left >= 0 && calls_left-- == 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
