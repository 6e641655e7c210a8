// Allocation failures on demand, and a count of what was not freed. A program that links libtest_alloc_failure.la has
// its operator new replaced by one that throws std::bad_alloc for the Nth allocation of the calling thread.
//
// Example: fail_every_allocation([&] { auto made = make_iov(parts); return made || made.error().code ==
// errc::no_memory; });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>

namespace ucxl::test
{

// Allocations of this thread until one fails; negative: none fails.
void fail_allocation_after(std::int64_t allocations);
// Whether the failure asked for has happened. Asks for no more.
bool stop_failing_allocations();

// From now on only allocations that these loaded libraries ask for fail, and those of libstdc++. `names`: parts of
// their paths. So neither the test itself nor a device that is a part of the process fails.
void fail_only_allocations_of(std::initializer_list<const char*> names);

// Calls fn before an allocation of this thread, after so many others; negative: never. fn stays until then.
void call_at_allocation(std::int64_t allocations, const std::function<void()>& fn);

// Allocations of all threads that were not freed.
std::int64_t living_allocations();

// Bytes of all allocations of this thread so far, also of those that were freed.
std::uint64_t allocated_bytes();

// Calls fn with the first allocation failing, then with the second one ... until it needs no more of them. fn returns
// whether it did right. Returns how many allocations were made to fail, or the number of the first one that fn got
// wrong, negated, minus 1.
template <typename Fn>
std::int64_t fail_every_allocation(Fn&& fn)
{
    for (std::int64_t number = 0;; ++number) {
        fail_allocation_after(number);
        const bool is_right   = fn();
        const bool has_failed = stop_failing_allocations();
        if (!is_right) {
            return -number - 1;
        }
        if (!has_failed) {
            return number;
        }
    }
}

} // namespace ucxl::test
