#include "patterned_window.h"

#include "support/must.h"

#include "ucs/layout/build.h"

namespace ucxl::test
{

namespace
{

layout_ptr shape_layout(window_shape shape, std::uint64_t length)
{
    const dim whole[]    = {{length / shape.block, static_cast<std::int64_t>(shape.stride)}};
    const auto blocks    = must(make_strided({.length = shape.block}, whole));
    const auto last      = static_cast<std::int64_t>(length / shape.block * shape.stride);
    const iov_part all[] = {{0, 0, {.nested = blocks}}, {0, last, {.length = length % shape.block}}};
    return must(make_iov(all));
}

} // namespace

std::vector<std::byte> pattern(std::size_t length, std::uint8_t seed)
{
    std::vector<std::byte> bytes(length);
    std::uint32_t state = seed * 2654435761u + 1;
    for (std::byte& one : bytes) {
        state = state * 1664525u + 1013904223u;
        one   = static_cast<std::byte>(state >> 24);
    }
    return bytes;
}

patterned_window::patterned_window(window_shape shape, std::uint64_t length, std::uint8_t seed, window_carrier carrier)
    : _shape(shape), _length(length), _memory(pattern((length / shape.block + 1) * shape.stride, seed)),
      _initial(_memory)
{
    auto plan = must(pack_plan::compile(shape_layout(shape, length)));
    _window   = must(window_registry::instance().create({std::move(plan), {_memory.data()}}, carrier));
}

patterned_window::~patterned_window()
{
    window_registry::instance().destroy(_window);
}

std::vector<std::byte> patterned_window::packed() const
{
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < _memory.size() && bytes.size() < _length; ++i) {
        if (!is_gap(i)) {
            bytes.push_back(_memory[i]);
        }
    }
    return bytes;
}

bool patterned_window::gaps_untouched() const
{
    std::uint64_t described = 0;
    for (std::size_t i = 0; i < _memory.size(); ++i) {
        const bool gap = is_gap(i) || described == _length;
        described += gap ? 0 : 1;
        if (gap && _memory[i] != _initial[i]) {
            return false;
        }
    }
    return true;
}

} // namespace ucxl::test
