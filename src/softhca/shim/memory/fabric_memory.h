// The memory of a fabric: a file in no directory, kept by softhca-run (or by the one process there is), that every
// process maps. It ends with the last of them.
//
// The file is sparse and laid out for those who map parts of it through a device file (kernel_device.h): libmlx5
// computes the offsets of device memory pages itself, from a 16-bit index, so device memory is at those offsets and is
// mapped into its place in the arena.
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

class fabric_memory
{
public:
    // A new file, formatted. The descriptor is close-on-exec.
    static std::expected<fabric_memory, std::string> create(const fabric_options& options);

    // The file that descriptor `file` of a process is, made by create().
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
    int _process; // that has the file open, 0: this one, in `_file`
    int _file;
};

} // namespace ucxl::softhca
