// Memory that the CPU reaches only by copies: that of a network card, at addresses of the arena.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucxl
{

// Copies between such memory and memory of the process. Any thread, also inside a reader_section; so no implementation
// waits for one that destroys a window. Both return false if the range is not, or no longer, such memory, or if the
// device fails; then nothing else was read or written.
class indirect_memory
{
public:
    virtual bool read(const std::byte* address, std::uint64_t length, void* target) const  = 0;
    virtual bool write(std::byte* address, std::uint64_t length, const void* source) const = 0;

protected:
    ~indirect_memory() = default;
};

} // namespace ucxl
