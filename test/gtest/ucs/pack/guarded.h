// Memory between two pages that must not be touched: one byte too far is a SIGSEGV. The bytes lie right behind the
// front guard or right before the back guard.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <span>

namespace ucxl::test
{

enum class guard_side { front, back };

class guarded_memory
{
public:
    guarded_memory(std::size_t length, guard_side exact) : _length(length)
    {
        const auto page          = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t inside = (length + page - 1) / page * page;
        _mapped                  = inside + 2 * page;
        void* at = mmap(nullptr, _mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) {
            throw std::bad_alloc();
        }
        _start = static_cast<std::byte*>(at);
        if (inside > 0 && mprotect(_start + page, inside, PROT_READ | PROT_WRITE) != 0) {
            throw std::bad_alloc();
        }
        _data = _start + page + (exact == guard_side::back ? inside - length : 0);
    }
    ~guarded_memory() { munmap(_start, _mapped); }
    guarded_memory(const guarded_memory&)            = delete;
    guarded_memory& operator=(const guarded_memory&) = delete;

    std::byte* data() const { return _data; }
    std::span<std::byte> bytes() const { return {_data, _length}; }

private:
    std::size_t _length;
    std::size_t _mapped = 0;
    std::byte* _start   = nullptr;
    std::byte* _data    = nullptr;
};

} // namespace ucxl::test
