#include "copy_counter.h"

#include "device_handler.h"

#include <atomic>
#include <vector>

#include <dlfcn.h>

namespace ucxl::bench
{

namespace
{

struct range {
    const std::byte* begin;
    const std::byte* end;
};

std::vector<range> watched;
constinit std::atomic<bool> is_counting     = false;
constinit std::atomic<std::uint64_t> copied = 0;

bool is_watched(const void* address)
{
    for (const range& one : watched) {
        if (address >= one.begin && address < one.end) {
            return true;
        }
    }
    return false;
}

using copy_function = void* (*)(void*, const void*, std::size_t);

// A memcpy that is called while the real one is looked up. Stores are volatile, because a compiler would make a call of
// memcpy of the loop otherwise.
void* copy_bytes(void* to, const void* from, std::size_t length)
{
    auto* const target       = static_cast<volatile std::byte*>(to);
    const auto* const source = static_cast<const std::byte*>(from);
    const bool is_backwards  = target > source;
    for (std::size_t i = 0; i < length; ++i) {
        const std::size_t at = is_backwards ? length - 1 - i : i;
        target[at]           = source[at];
    }
    return to;
}

// libc's memmove serves both functions. Looked up when the program starts, before it has threads.
constinit std::atomic<copy_function> libc_copy = copy_bytes;

[[gnu::constructor]] void find_libc_copy()
{
    libc_copy = reinterpret_cast<copy_function>(dlsym(RTLD_NEXT, "memmove"));
}

void* copy(void* to, const void* from, std::size_t length)
{
    if (is_counting.load(std::memory_order_relaxed) && !is_in_device() && (is_watched(to) || is_watched(from))) {
        copied.fetch_add(length, std::memory_order_relaxed);
    }
    return libc_copy.load(std::memory_order_relaxed)(to, from, length);
}

} // namespace

void copy_counter::watch(std::span<std::byte* const> arrays, std::span<const std::size_t> lengths)
{
    watched.clear();
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        watched.push_back({arrays[i], arrays[i] + lengths[i]});
    }
}

void copy_counter::start()
{
    copied      = 0;
    is_counting = true;
}

std::uint64_t copy_counter::stop()
{
    is_counting = false;
    return copied;
}

} // namespace ucxl::bench

// The names of libc, and those that programs compiled with _FORTIFY_SOURCE call.
extern "C" {
void* memcpy(void* __restrict to, const void* __restrict from, std::size_t length)
{
    return ucxl::bench::copy(to, from, length);
}
void* memmove(void* to, const void* from, std::size_t length)
{
    return ucxl::bench::copy(to, from, length);
}
void* __memcpy_chk(void* __restrict to, const void* __restrict from, std::size_t length, std::size_t)
{
    return ucxl::bench::copy(to, from, length);
}
void* __memmove_chk(void* to, const void* from, std::size_t length, std::size_t)
{
    return ucxl::bench::copy(to, from, length);
}
}
