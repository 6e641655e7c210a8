#include "alloc_failure.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>

#include <link.h>

namespace
{

thread_local std::int64_t allocations_left             = -1;
thread_local bool has_failed                           = false;
thread_local std::int64_t allocations_before_call      = -1;
thread_local const std::function<void()>* to_be_called = nullptr;
thread_local std::uint64_t bytes_asked_for             = 0;
std::atomic<std::int64_t> living{0};

// Addresses of the libraries whose allocations may fail; without any, all may.
struct code_range {
    std::uintptr_t begin = 0;
    std::uintptr_t end   = 0;
};
std::array<code_range, 8> failing;
std::size_t num_failing = 0;

bool may_fail(const void* caller)
{
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    const auto ranges  = std::span(failing).first(num_failing);
    return ranges.empty() || std::ranges::any_of(ranges, [&](const code_range& range) {
               return address >= range.begin && address < range.end;
           });
}

int note_failing(dl_phdr_info* library, std::size_t, void* name)
{
    if (std::strstr(library->dlpi_name, static_cast<const char*>(name)) != nullptr && num_failing < failing.size()) {
        code_range range{library->dlpi_addr, library->dlpi_addr};
        for (const auto& segment : std::span(library->dlpi_phdr, library->dlpi_phnum)) {
            if (segment.p_type == PT_LOAD) {
                range.end = std::max<std::uintptr_t>(range.end, range.begin + segment.p_vaddr + segment.p_memsz);
            }
        }
        failing[num_failing++] = range;
    }
    return 0;
}

void* allocate(std::size_t size, std::size_t alignment, const void* caller)
{
    if (allocations_left >= 0 && may_fail(caller) && allocations_left-- == 0) {
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
    bytes_asked_for += size;
    return memory;
}

void* allocate_or_null(std::size_t size, std::size_t alignment, const void* caller) noexcept
{
    try {
        return allocate(size, alignment, caller);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
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

void fail_only_allocations_of(std::initializer_list<const char*> names)
{
    num_failing = 0;
    for (const char* const name : names) {
        dl_iterate_phdr(note_failing, const_cast<char*>(name));
    }
    dl_iterate_phdr(note_failing, const_cast<char*>("libstdc++"));
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

std::uint64_t allocated_bytes()
{
    return bytes_asked_for;
}

} // namespace ucxl::test

// The standard library's array and nothrow forms call the first of these. The sanitizers' own do not, and would see
// memory of one allocator freed by the other, so all forms are here.
void* operator new(std::size_t size)
{
    return allocate(size, 1, __builtin_return_address(0));
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    return allocate_or_null(size, 1, __builtin_return_address(0));
}

void* operator new[](std::size_t size)
{
    return allocate(size, 1, __builtin_return_address(0));
}

void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept
{
    return operator new(size, nothrow);
}

void* operator new(std::size_t size, std::align_val_t alignment)
{
    return allocate(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}

void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept
{
    return allocate_or_null(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
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
