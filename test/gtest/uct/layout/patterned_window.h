// A window over its own memory with a pattern in it, and the expected packed bytes, computed without the code under
// test.
#pragma once

#include "ucs/window/window.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucxl::test
{

// Blocks of `block` bytes, `stride` bytes apart, for `length` packed bytes in all; the last block may be shorter.
struct window_shape {
    std::uint64_t block;
    std::uint64_t stride;
};

class patterned_window
{
public:
    patterned_window(window_shape shape, std::uint64_t length, std::uint8_t seed,
                     window_carrier carrier = window_carrier::keys);
    ~patterned_window();
    patterned_window(const patterned_window&)            = delete;
    patterned_window& operator=(const patterned_window&) = delete;

    std::byte* address() const { return _window->address(); }
    std::uint64_t length() const { return _window->length(); }
    const window& view() const { return *_window; }

    std::vector<std::byte> packed() const;
    // Whether every byte that the layout does not describe is unchanged.
    bool gaps_untouched() const;

private:
    bool is_gap(std::size_t position) const { return position % _shape.stride >= _shape.block; }

    window_shape _shape;
    std::uint64_t _length;
    std::vector<std::byte> _memory;
    std::vector<std::byte> _initial;
    window* _window;
};

std::vector<std::byte> pattern(std::size_t length, std::uint8_t seed);

} // namespace ucxl::test
