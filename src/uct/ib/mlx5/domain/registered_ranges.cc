#include "registered_ranges.h"

#include <new>

namespace ucxl::mlx5
{

void registered_ranges::add(const void* memh, const memory_range& range) noexcept
{
    const std::lock_guard guard(_lock);
    try {
        _ranges.insert_or_assign(memh, range);
    } catch (const std::bad_alloc&) {
        // The memory can be used all the same, but for being exported.
    }
}

void registered_ranges::remove(const void* memh) noexcept
{
    const std::lock_guard guard(_lock);
    _ranges.erase(memh);
}

std::optional<memory_range> registered_ranges::find(const void* memh) const
{
    const std::lock_guard guard(_lock);
    const auto found = _ranges.find(memh);
    return found == _ranges.end() ? std::nullopt : std::optional(found->second);
}

} // namespace ucxl::mlx5
