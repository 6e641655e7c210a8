// Memory from mmap() that is unmapped with its owner.
//
// Example: auto memory = UCXL_TRY(owned_mapping::map_file(length, PROT_READ | PROT_WRITE, fd, 0));
#pragma once

#include "error.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/mman.h>

namespace ucxl
{

class owned_mapping
{
public:
    owned_mapping() = default;
    // As mmap(2), at any address. Errors: no_memory.
    static result<owned_mapping> map(std::uint64_t length, int protection, int flags, int fd, std::uint64_t offset)
    {
        void* const start = mmap(nullptr, length, protection, flags, fd, static_cast<off_t>(offset));
        if (start == MAP_FAILED) {
            return fail(errc::no_memory, std::format("mapping {} bytes: {}", length, std::strerror(errno)));
        }
        return owned_mapping(static_cast<std::byte*>(start), length);
    }
    // Of a file, shared with other processes. If it is long enough, its huge pages (pages.h) can be mapped there. The
    // address is as far from a multiple of `alignment`, which is 0 or a power of two from a page on, as the offset.
    // Errors: no_memory.
    static result<owned_mapping> map_file(std::uint64_t length, int protection, int fd, std::uint64_t offset,
                                          std::uint64_t alignment = 0);
    owned_mapping(owned_mapping&& other) noexcept
        : _start(std::exchange(other._start, nullptr)), _length(std::exchange(other._length, 0))
    {
    }
    owned_mapping& operator=(owned_mapping&& other) noexcept
    {
        owned_mapping moved(std::move(other));
        std::swap(_start, moved._start);
        std::swap(_length, moved._length);
        return *this;
    }
    ~owned_mapping()
    {
        if (_start != nullptr) {
            munmap(_start, _length);
        }
    }

    std::byte* start() const { return _start; }
    std::uint64_t length() const { return _length; } // bytes

private:
    owned_mapping(std::byte* start, std::uint64_t length) : _start(start), _length(length) {}

    std::byte* _start     = nullptr; // null: nothing is mapped
    std::uint64_t _length = 0;
};

} // namespace ucxl
