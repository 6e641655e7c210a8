#include "card_memory.h"

#include <algorithm>
#include <utility>

namespace ucxl::mlx5
{

result<std::unique_ptr<card_memory>> card_memory::create(domain& keys, const window_directory& windows)
{
    std::unique_ptr<card_memory> created(new card_memory(windows));
    created->_pool = UCXL_TRY(memic_pool::create(keys, *created));
    return created;
}

// Readers find the memory until its addresses are free, so these go first.
card_memory::~card_memory()
{
    for (std::byte* const address : std::exchange(_reserved, {})) {
        _windows.free_addresses(address);
    }
    _pool.reset();
}

result<memic_allocation> card_memory::allocate(std::uint64_t length)
{
    auto allocated = _pool->allocate(length);
    drain();
    return allocated;
}

result<void> card_memory::release(const void* address)
{
    auto released = _pool->release(address);
    drain();
    return released;
}

void card_memory::drain() noexcept
{
    std::list<std::byte*> unused;
    {
        const std::lock_guard guard(_lock);
        unused.swap(_unused);
    }
    for (std::byte* const address : unused) {
        _windows.free_addresses(address);
    }
}

result<std::byte*> card_memory::reserve(std::uint64_t length)
{
    std::list<std::byte*> place(1); // made first, so that neither this nor release() can fail later
    place.front() = UCXL_TRY(_windows.reserve_addresses(length, *this));
    const std::lock_guard guard(_lock);
    _reserved.splice(_reserved.begin(), place);
    return _reserved.front();
}

void card_memory::release(std::byte* address, std::uint64_t) noexcept
{
    const std::lock_guard guard(_lock);
    const auto found = std::ranges::find(_reserved, address);
    if (found != _reserved.end()) {
        _unused.splice(_unused.begin(), _reserved, found);
    }
}

bool card_memory::read(const std::byte* address, std::uint64_t length, void* target) const
{
    return _pool->copy_out(address, length, target).has_value();
}

bool card_memory::write(std::byte* address, std::uint64_t length, const void* source) const
{
    return _pool->copy_in(address, length, source).has_value();
}

} // namespace ucxl::mlx5
