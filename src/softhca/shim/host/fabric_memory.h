// The memory of a fabric: an anonymous file that every process maps. softhca-run keeps it, or the only process. It ends
// with the last of them.
//
// The file is sparse. Its layout suits those who map parts of it through a device file (kernel.h): libmlx5 computes the
// offsets of device memory pages itself, from a 16-bit index. Device memory is at those offsets, and is mapped to its
// place in the arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "shared_lock.h"
#include "softhca/core/fabric.h"

namespace ucxl::softhca
{

// The device's clock counts nanoseconds of the monotonic clock and does not wrap.
inline constexpr std::uint64_t timestamp_mask = 0x7fffffffffffffff;

class fabric_memory
{
public:
    // Makes and formats a new file. The descriptor is close-on-exec.
    static std::expected<fabric_memory, std::string> create(const fabric_options& options);

    // Opens the file of descriptor `file` of a process, made by create().
    static std::expected<fabric_memory, std::string> open(int process, int file);

    arena& records() const { return *reinterpret_cast<arena*>(_start); }
    std::span<std::byte> bytes() const { return {_start, fabric::memory_bytes()}; }
    shared_lock& lock() const;

    // A new descriptor of the file, or a negative errno.
    int open_file(int flags) const;
    int file() const { return _file; }

    static std::uint64_t uar_offset(std::uint32_t uar);
    static std::uint16_t memic_page_index(unsigned device, std::size_t page);

private:
    fabric_memory(std::byte* start, int process, int file) : _start(start), _process(process), _file(file) {}

    static std::expected<std::byte*, std::string> map(int file);

    std::byte* _start;
    int _process; // the process that has the file open as `_file`; 0: this one
    int _file;
};

} // namespace ucxl::softhca
