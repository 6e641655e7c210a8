// An object in memory that forked processes share.
#pragma once

#include <memory>
#include <new>
#include <stdexcept>
#include <sys/mman.h>

namespace examples
{

struct unmap_shared {
    std::size_t length_bytes = 0;
    void operator()(void* address) const { munmap(address, length_bytes); }
};

template <typename T>
using shared_array = std::unique_ptr<T[], unmap_shared>;

// The object is zeroed. T must be valid when all its bytes are zero, and must need no destructor.
template <typename T>
shared_array<T> make_shared_array(std::size_t count)
{
    const std::size_t length_bytes = count * sizeof(T);
    void* const address = mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
        throw std::runtime_error("mmap of shared memory failed");
    }
    return shared_array<T>(static_cast<T*>(address), unmap_shared{length_bytes});
}

} // namespace examples
