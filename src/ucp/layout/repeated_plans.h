// The plans of a datatype for `count` elements in sequence: a transfer of 1,000 columns of 8 bytes each runs one kernel
// instead of 1,000.
//
// Invariant: every plan returned lives as long as this object. Thread safe; count 1 takes no lock.
#pragma once

#include "handle.h"

#include <memory>
#include <shared_mutex>
#include <unordered_map>

namespace ucxl
{

class repeated_plans
{
public:
    // How many plans are kept. An application with more counts gets the plan of one element for the rest.
    static constexpr std::size_t max_kept = 64;

    repeated_plans(handle_ptr layout, pack_plan_ptr element);

    const layout& element_layout() const { return *_layout->value; }
    // Returns the plan of `count` elements, or that of one element if there is no such plan (too many counts, a limit
    // of layouts, no memory).
    const pack_plan& get(std::uint64_t count) noexcept;

    // Around fork: a child must not get the plans while another thread changes them. The C library takes who unlocks
    // in the child for another thread, and leaves the lock held, so the child has a new one.
    void before_fork() { _lock.lock(); }
    void after_fork_in_parent() { _lock.unlock(); }
    void after_fork_in_child() { std::construct_at(&_lock); }

private:
    const pack_plan& find_or_compile(std::uint64_t count);

    handle_ptr _layout;
    pack_plan_ptr _element;
    std::shared_mutex _lock;
    std::unordered_map<std::uint64_t, pack_plan_ptr> _by_count;
};

} // namespace ucxl
