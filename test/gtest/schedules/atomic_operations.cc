// The functions that a compiler calls for -fsanitize=thread: each atomic operation is a step of the scheduler.
#include "scheduler.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <malloc.h>

namespace
{

using ucxl::test::scheduler;

constexpr int sequentially_consistent = __ATOMIC_SEQ_CST;

template <typename Word>
Word load(const volatile Word* from)
{
    auto* const all = scheduler::current();
    if (all == nullptr) {
        return *from;
    }
    all->step_at(from, sizeof(Word));
    const std::uint64_t* const own = all->buffered(from);
    return own != nullptr ? static_cast<Word>(*own) : *from;
}

template <typename Word>
void store(volatile Word* to, Word value, int order)
{
    auto* const all = scheduler::current();
    if (all == nullptr) {
        *to = value;
        return;
    }
    all->step_at(to, sizeof(Word));
    all->buffer_store(to, value, sizeof(Word));
    if (order == sequentially_consistent) {
        all->flush();
    }
}

// Before an operation that reads and writes, which is a full barrier in processors of x86-64.
scheduler* step_and_flush(const volatile void* address, std::size_t length)
{
    auto* const all = scheduler::current();
    if (all != nullptr) {
        all->step_at(address, length);
        all->flush();
    }
    return all;
}

template <typename Word, typename Change>
Word change(volatile Word* at, Change&& changed)
{
    step_and_flush(at, sizeof(Word));
    const Word before = *at;
    *at               = static_cast<Word>(changed(before));
    return before;
}

template <typename Word>
int compare_exchange(volatile Word* at, Word* expected, Word wanted, bool is_weak)
{
    auto* const all = step_and_flush(at, sizeof(Word));
    if (*at != *expected || (is_weak && all != nullptr && all->fails_for_no_reason())) {
        *expected = *at;
        return 0;
    }
    *at = wanted;
    return 1;
}

void access(const volatile void* address, std::size_t length)
{
    if (auto* const all = scheduler::current()) {
        all->access(address, length);
    }
}

} // namespace

#define UCXL_ATOMICS(BITS)                                                                                             \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_load(const volatile std::uint##BITS##_t* at, int)             \
    {                                                                                                                  \
        return load(at);                                                                                               \
    }                                                                                                                  \
    extern "C" void __tsan_atomic##BITS##_store(volatile std::uint##BITS##_t* at, std::uint##BITS##_t value,           \
                                                int order)                                                             \
    {                                                                                                                  \
        store(at, value, order);                                                                                       \
    }                                                                                                                  \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_exchange(volatile std::uint##BITS##_t* at,                    \
                                                                  std::uint##BITS##_t value, int)                      \
    {                                                                                                                  \
        return change(at, [&](auto) { return value; });                                                                \
    }                                                                                                                  \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_fetch_add(volatile std::uint##BITS##_t* at,                   \
                                                                   std::uint##BITS##_t value, int)                     \
    {                                                                                                                  \
        return change(at, [&](auto before) { return before + value; });                                                \
    }                                                                                                                  \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_fetch_sub(volatile std::uint##BITS##_t* at,                   \
                                                                   std::uint##BITS##_t value, int)                     \
    {                                                                                                                  \
        return change(at, [&](auto before) { return before - value; });                                                \
    }                                                                                                                  \
    extern "C" int __tsan_atomic##BITS##_compare_exchange_strong(                                                      \
        volatile std::uint##BITS##_t* at, std::uint##BITS##_t* expected, std::uint##BITS##_t wanted, int, int)         \
    {                                                                                                                  \
        return compare_exchange(at, expected, wanted, false);                                                          \
    }                                                                                                                  \
    extern "C" int __tsan_atomic##BITS##_compare_exchange_weak(                                                        \
        volatile std::uint##BITS##_t* at, std::uint##BITS##_t* expected, std::uint##BITS##_t wanted, int, int)         \
    {                                                                                                                  \
        return compare_exchange(at, expected, wanted, true);                                                           \
    }                                                                                                                  \
    /* clang's, for both */                                                                                            \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_compare_exchange_val(                                         \
        volatile std::uint##BITS##_t* at, std::uint##BITS##_t expected, std::uint##BITS##_t wanted, int, int)          \
    {                                                                                                                  \
        compare_exchange(at, &expected, wanted, false);                                                                \
        return expected;                                                                                               \
    }

UCXL_ATOMICS(8)
UCXL_ATOMICS(32)
UCXL_ATOMICS(64)
#undef UCXL_ATOMICS

extern "C" {
void __tsan_init()
{
}
void __tsan_func_entry(void*)
{
}
void __tsan_func_exit()
{
}
void __tsan_atomic_thread_fence(int order)
{
    auto* const all = scheduler::current();
    if (all != nullptr && order == sequentially_consistent) {
        all->flush();
    }
}
// Of the compiler only.
void __tsan_atomic_signal_fence(int)
{
}
}

// Other loads and stores are of memory that only one thread has at the moment. They see what the thread itself stored.
#define UCXL_ACCESSES(BYTES)                                                                                           \
    extern "C" void __tsan_read##BYTES(void* at)                                                                       \
    {                                                                                                                  \
        access(at, BYTES);                                                                                             \
    }                                                                                                                  \
    extern "C" void __tsan_write##BYTES(void* at)                                                                      \
    {                                                                                                                  \
        access(at, BYTES);                                                                                             \
    }                                                                                                                  \
    extern "C" void __tsan_unaligned_read##BYTES(void* at)                                                             \
    {                                                                                                                  \
        access(at, BYTES);                                                                                             \
    }                                                                                                                  \
    extern "C" void __tsan_unaligned_write##BYTES(void* at)                                                            \
    {                                                                                                                  \
        access(at, BYTES);                                                                                             \
    }

UCXL_ACCESSES(1)
UCXL_ACCESSES(2)
UCXL_ACCESSES(4)
UCXL_ACCESSES(8)
UCXL_ACCESSES(16)
#undef UCXL_ACCESSES

extern "C" {
void __tsan_read_range(void* at, std::size_t length)
{
    access(at, length);
}
void __tsan_write_range(void* at, std::size_t length)
{
    access(at, length);
}
void __tsan_vptr_update(void** at, void*)
{
    access(at, sizeof(*at));
}
void __tsan_vptr_read(void** at)
{
    access(at, sizeof(*at));
}
// Of clang only: what other compilers copy by memcpy() is not seen.
void* __tsan_memmove(void* to, const void* from, std::size_t length)
{
    access(to, length);
    access(from, length);
    return std::memmove(to, from, length);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t length)
{
    access(to, length);
    access(from, length);
    return std::memcpy(to, from, length);
}
void* __tsan_memset(void* to, int value, std::size_t length)
{
    access(to, length);
    return std::memset(to, value, length);
}
}

void operator delete(void* memory) noexcept
{
    auto* const all = scheduler::current();
    if (all != nullptr && memory != nullptr) {
        all->keep_freed(memory, malloc_usable_size(memory));
    } else {
        std::free(memory);
    }
}

void operator delete(void* memory, std::size_t) noexcept
{
    operator delete(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept
{
    operator delete(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t) noexcept
{
    operator delete(memory);
}
