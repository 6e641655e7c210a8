// Windows of other processes, at the addresses that they have there: memory that was imported. No CPU instruction of
// this process reaches it, only copies by a device.
#pragma once

#include <cstdint>

namespace ucxl
{

// Any thread, but not inside a reader_section: the device is waited for.
class foreign_memory
{
public:
    // Whether some byte of [address, address + length) belongs to it.
    virtual bool touches(const void* address, std::uint64_t length) const = 0;
    // Copy between it and plain memory of this process. Return false if the range is not all inside one window, if it
    // is not clear whose, or if the device cannot reach it (any more). Then some bytes may have been copied.
    virtual bool read(const void* address, std::uint64_t length, void* target) const  = 0;
    virtual bool write(void* address, std::uint64_t length, const void* source) const = 0;

protected:
    ~foreign_memory() = default;
};

} // namespace ucxl
