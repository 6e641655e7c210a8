// Which memory each registration of stock UCX covers, because UCX's handle does not tell. UCP gives the handle of one
// registration for any part of it, and an importing UCP takes what it imported of one part for others. So an exported
// key must show all of the registration.
//
// Example: ranges.add(memh, {address, length}); const auto all = ranges.find(memh); ranges.remove(memh);
//
// Thread safety: everything.
#pragma once

#include "base_memory.h"

#include <mutex>
#include <optional>
#include <unordered_map>

namespace ucxl::mlx5
{

class registered_ranges
{
public:
    // Without memory for it the registration stays unknown.
    void add(const void* memh, const memory_range& range) noexcept;
    void remove(const void* memh) noexcept;
    std::optional<memory_range> find(const void* memh) const;

private:
    mutable std::mutex _lock;
    std::unordered_map<const void*, memory_range> _ranges;
};

} // namespace ucxl::mlx5
