#include "alloc_failure.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace
{

thread_local std::int64_t allocations_left             = -1;
thread_local bool has_failed                           = false;
thread_local std::int64_t allocations_before_call      = -1;
thread_local const std::function<void()>* to_be_called = nullptr;
std::atomic<std::int64_t> living{0};

void* allocate(std::size_t size, std::size_t alignment)
{
    if (allocations_left >= 0 && allocations_left-- == 0) {
        has_failed = true;
        throw std::bad_alloc();
    }
    if (allocations_before_call >= 0 && allocations_before_call-- == 0) {
        (*to_be_called)();
    }
    void* memory = alignment > alignof(std::max_align_t)
                       ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                       : std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    living.fetch_add(1, std::memory_order_relaxed);
    return memory;
}

void release(void* memory)
{
    if (memory != nullptr) {
        living.fetch_sub(1, std::memory_order_relaxed);
        std::free(memory);
    }
}

} // namespace

namespace ucxl::test
{

void fail_allocation_after(std::int64_t allocations)
{
    has_failed       = false;
    allocations_left = allocations;
}

bool stop_failing_allocations()
{
    allocations_left = -1;
    return has_failed;
}

void call_at_allocation(std::int64_t allocations, const std::function<void()>& fn)
{
    to_be_called            = &fn;
    allocations_before_call = allocations;
}

std::int64_t living_allocations()
{
    return living.load(std::memory_order_relaxed);
}

} // namespace ucxl::test

// The standard library's array and nothrow forms call the first of these. The sanitizers' own do not, and would see
// memory of one allocator freed by the other, so all forms are here.
void* operator new(std::size_t size)
{
    return allocate(size, 1);
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    try {
        return allocate(size, 1);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void* operator new[](std::size_t size)
{
    return allocate(size, 1);
}

void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept
{
    return operator new(size, nothrow);
}

void* operator new(std::size_t size, std::align_val_t alignment)
{
    return allocate(size, static_cast<std::size_t>(alignment));
}

void operator delete(void* memory) noexcept
{
    release(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    release(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept
{
    release(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t) noexcept
{
    release(memory);
}

void operator delete[](void* memory) noexcept
{
    release(memory);
}

void operator delete[](void* memory, std::size_t) noexcept
{
    release(memory);
}
