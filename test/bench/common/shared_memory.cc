#include "shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ucxl::bench
{

namespace
{

int expect_success(int made, const char* what)
{
    if (made < 0) {
        throw std::system_error(errno, std::generic_category(), what);
    }
    return made;
}

} // namespace

shared_memory::shared_memory(std::size_t length)
    : _file(expect_success(memfd_create("bench", MFD_CLOEXEC), "memfd_create")), _length(length)
{
    // All pages before they are mapped, as those find them that map the memory later: page tables that grow with the
    // memory lie scattered in it. Under a hypervisor that made columns a third slower here than there.
    expect_success(fallocate(_file, 0, 0, static_cast<off_t>(length)), "fallocate");
    map();
}

shared_memory::shared_memory(const std::string& path, std::size_t length)
    : _file(expect_success(open(path.c_str(), O_RDWR | O_CLOEXEC), path.c_str())), _length(length)
{
    map();
}

shared_memory::~shared_memory()
{
    munmap(_data, _length);
    close(_file);
}

std::string shared_memory::path() const
{
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(_file);
}

void shared_memory::map()
{
    void* at = mmap(nullptr, _length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, _file, 0);
    if (at == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), "mmap");
    }
    _data = static_cast<std::byte*>(at);
}

} // namespace ucxl::bench
