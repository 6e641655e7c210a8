#include "staging.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace ucxl::mpi
{

namespace
{

constexpr std::size_t max_kept_length = 256ULL << 20;

struct kept_buffers {
    struct kept {
        std::byte* memory    = nullptr;
        std::size_t capacity = 0;
    };
    std::mutex lock;
    std::array<kept, 8> all;
    std::size_t length = 0;
};

kept_buffers& kept()
{
    static kept_buffers& only = *new kept_buffers;
    return only;
}

} // namespace

staging::buffer staging::acquire(std::size_t length) noexcept
{
    if (length > SIZE_MAX / 4) {
        return nullptr;
    }
    const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(length, 4096));
    {
        const std::lock_guard guard(kept().lock);
        for (auto& each : kept().all) {
            if (each.memory != nullptr && each.capacity == capacity) {
                kept().length -= capacity;
                return {std::exchange(each.memory, nullptr), give_back{capacity}};
            }
        }
    }
    return {new (std::nothrow) std::byte[capacity], give_back{capacity}};
}

void staging::give_back::operator()(std::byte* memory) const noexcept
{
    {
        const std::lock_guard guard(kept().lock);
        for (auto& each : kept().all) {
            if (each.memory == nullptr && kept().length + capacity <= max_kept_length) {
                each = {memory, capacity};
                kept().length += capacity;
                return;
            }
        }
    }
    delete[] memory;
}

void staging::release() noexcept
{
    const std::lock_guard guard(kept().lock);
    for (auto& each : kept().all) {
        delete[] std::exchange(each.memory, nullptr);
    }
    kept().length = 0;
}

} // namespace ucxl::mpi
