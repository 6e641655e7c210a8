// Memory that a program works with: it writes a message before it sends it, and reads what has come. One byte of each
// cache line that a layout touches stands for that, so that data are where they would be, at the least cost.
//
//     touched_memory source(footprint(*of.type, of.extent, shift_of(memory)), memory);
//     source.write(); send(); receive(); target.read();
//
// The bytes keep their values, so what arrives can be compared. std only.
#pragma once

#include "footprint.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace ucxl::bench
{

class touched_memory
{
public:
    touched_memory() = default;
    touched_memory(const footprint& lines, std::span<std::byte> memory) : _lines(lines), _memory(memory) {}

    void write() const
    {
        each([](volatile std::byte* place) { *place = *place; });
    }
    void read() const
    {
        each([](const volatile std::byte* place) { static_cast<void>(*place); });
    }

private:
    template <typename Fn>
    void each(Fn&& touch) const
    {
        std::byte* const first = first_line(_memory.data());
        for (const line_run& run : _lines.all()) {
            for (std::size_t i = 0; i < run.count; ++i) {
                touch(std::max(first + (run.first + i) * line_length, _memory.data()));
            }
        }
    }

    footprint _lines;
    std::span<std::byte> _memory;
};

} // namespace ucxl::bench
