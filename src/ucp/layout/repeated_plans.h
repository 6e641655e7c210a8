// Plans of a datatype for "count elements, one after another": a transfer of 1,000 columns of 8 bytes each runs one
// kernel instead of 1,000.
//
// Invariant: a plan handed out stays as long as this object. Thread safe; count 1 takes no lock.
#pragma once

#include "handle.h"

#include <shared_mutex>
#include <unordered_map>

namespace ucxl
{

class repeated_plans
{
public:
    // Plans kept; an application uses few counts, and one that uses many gets the element's plan for the others.
    static constexpr std::size_t max_kept = 64;

    repeated_plans(handle_ptr layout, pack_plan_ptr element);

    const layout& element_layout() const { return *_layout->value; }
    // Of `count` elements, or of one element where there is no such plan (too many counts, beyond a limit of layouts,
    // no memory).
    const pack_plan& get(std::uint64_t count) noexcept;

private:
    const pack_plan& find_or_compile(std::uint64_t count);

    handle_ptr _layout;
    pack_plan_ptr _element;
    std::shared_mutex _lock;
    std::unordered_map<std::uint64_t, pack_plan_ptr> _by_count;
};

} // namespace ucxl
