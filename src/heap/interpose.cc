// The functions of the C library that allocate memory. Large blocks are the heap's, all others the C library's own.
// operator new, Fortran's ALLOCATE and NumPy call these.
//
// Until the constructor has run, and for small blocks always, a call costs one comparison more than without us.
#include "heap.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

using namespace ucxl;

extern "C" {
void* __libc_malloc(std::size_t length);
void __libc_free(void* block);
void* __libc_calloc(std::size_t count, std::size_t length);
void* __libc_realloc(void* block, std::size_t length);
void* __libc_memalign(std::size_t alignment, std::size_t length);
void* __libc_valloc(std::size_t length);
void* __libc_pvalloc(std::size_t length);
}

namespace
{

constexpr std::size_t least_alignment = alignof(std::max_align_t);

[[gnu::constructor]] void start_heap()
{
    heap::start();
}

bool is_large(std::size_t length)
{
    return __builtin_expect(length >= heap::min_length.load(std::memory_order_relaxed), false);
}

bool is_power_of_two(std::size_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

// The C library has no other name for it, and another malloc that is loaded has the same one.
std::size_t usable_length_of_small(void* block)
{
    using function = std::size_t (*)(void*);
    static constinit std::atomic<function> next{nullptr};
    function known = next.load(std::memory_order_relaxed);
    if (known == nullptr) {
        void* const c_library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        if (c_library == nullptr) {
            return 0;
        }
        known = reinterpret_cast<function>(dlsym(c_library, "malloc_usable_size"));
        next.store(known, std::memory_order_relaxed);
    }
    return known == nullptr ? 0 : known(block);
}

// Moves a block of the heap to the C library; null if there is no memory, and then it is as it was.
void* move_out(void* block, std::size_t length)
{
    const std::size_t old_length = heap::usable_length(block);
    void* const moved            = __libc_malloc(length);
    if (moved != nullptr) {
        std::memcpy(moved, block, old_length < length ? old_length : length);
        heap::release(block);
    }
    return moved;
}

[[gnu::noinline]] void* allocate_large(std::size_t length)
{
    void* const block = heap::allocate(length, least_alignment, heap::contents::any);
    return block != nullptr ? block : __libc_malloc(length);
}

[[gnu::noinline]] void* allocate_large_zeroed(std::size_t count, std::size_t length)
{
    void* const block = heap::allocate(count * length, least_alignment, heap::contents::zero);
    return block != nullptr ? block : __libc_calloc(count, length);
}

void* allocate_aligned(std::size_t alignment, std::size_t length)
{
    void* const block =
        is_large(length) && is_power_of_two(alignment)
            ? heap::allocate(length, alignment < least_alignment ? least_alignment : alignment, heap::contents::any)
            : nullptr;
    return block != nullptr ? block : __libc_memalign(alignment, length);
}

std::size_t page_length()
{
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A block of the C library, that grows. Those of unknown length, and very long ones, for which the heap has no place,
// are left to it: it moves pages, not bytes.
void* resize_small(void* block, std::size_t length)
{
    const std::size_t old_length = usable_length_of_small(block);
    void* const moved = old_length == 0 ? nullptr : heap::allocate(length, least_alignment, heap::contents::any);
    if (moved == nullptr) {
        return __libc_realloc(block, length);
    }
    std::memcpy(moved, block, old_length < length ? old_length : length);
    __libc_free(block);
    return moved;
}

// A block of the heap.
void* resize_large(void* block, std::size_t length)
{
    if (length == 0) {
        heap::release(block);
        return nullptr;
    }
    void* const resized = is_large(length) ? heap::resize(block, length) : nullptr;
    return resized != nullptr ? resized : move_out(block, length);
}

} // namespace

#pragma GCC visibility push(default)

extern "C" {

void* malloc(std::size_t length) noexcept
{
    return is_large(length) ? allocate_large(length) : __libc_malloc(length);
}

void free(void* block) noexcept
{
    if (__builtin_expect(heap::holds(block), false)) {
        heap::release(block);
    } else {
        __libc_free(block);
    }
}

void free_sized(void* block, std::size_t length) noexcept;
void free_sized(void* block, std::size_t /*length*/) noexcept
{
    free(block);
}

void free_aligned_sized(void* block, std::size_t alignment, std::size_t length) noexcept;
void free_aligned_sized(void* block, std::size_t /*alignment*/, std::size_t /*length*/) noexcept
{
    free(block);
}

void* calloc(std::size_t count, std::size_t length) noexcept
{
    std::size_t all = 0;
    return !__builtin_mul_overflow(count, length, &all) && is_large(all) ? allocate_large_zeroed(count, length)
                                                                         : __libc_calloc(count, length);
}

void* realloc(void* block, std::size_t length) noexcept
{
    if (__builtin_expect(heap::holds(block), false)) {
        return resize_large(block, length);
    }
    if (!is_large(length)) {
        return __libc_realloc(block, length);
    }
    return block == nullptr ? malloc(length) : resize_small(block, length);
}

void* reallocarray(void* block, std::size_t count, std::size_t length) noexcept
{
    std::size_t all = 0;
    if (__builtin_mul_overflow(count, length, &all)) {
        errno = ENOMEM;
        return nullptr;
    }
    return realloc(block, all);
}

void* memalign(std::size_t alignment, std::size_t length) noexcept
{
    return allocate_aligned(alignment, length);
}

void* aligned_alloc(std::size_t alignment, std::size_t length) noexcept
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return nullptr;
    }
    return allocate_aligned(alignment, length);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t length) noexcept
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) {
        return EINVAL;
    }
    const int before      = errno;
    void* const allocated = allocate_aligned(alignment, length);
    errno                 = before;
    if (allocated == nullptr) {
        return ENOMEM;
    }
    *block = allocated;
    return 0;
}

void* valloc(std::size_t length) noexcept
{
    return is_large(length) ? allocate_aligned(page_length(), length) : __libc_valloc(length);
}

void* pvalloc(std::size_t length) noexcept
{
    const std::size_t page = page_length();
    return is_large(length) && length <= PTRDIFF_MAX ? allocate_aligned(page, (length + page - 1) & ~(page - 1))
                                                     : __libc_pvalloc(length);
}

std::size_t malloc_usable_size(void* block) noexcept
{
    return heap::holds(block) ? heap::usable_length(block) : usable_length_of_small(block);
}

} // extern "C"

#pragma GCC visibility pop
