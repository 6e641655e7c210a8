// A scatter or gather list on the stack, filled element by element. Nothing is initialised before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "memory_transfer.h"

namespace ucxl::softhca
{

template <std::size_t Capacity>
class reference_list
{
public:
    reference_list() {}

    // False when the list is full.
    bool add(const reference& one)
    {
        if (_count == Capacity) {
            return false;
        }
        std::construct_at(&_items[_count++], one);
        _length += one.length;
        return true;
    }

    // Removes bytes from the front.
    void skip(std::uint64_t bytes)
    {
        for (std::size_t i = 0; i < _count && bytes != 0; i++) {
            const std::uint64_t here = std::min(bytes, _items[i].length);
            _items[i].address += here;
            _items[i].length -= here;
            _length -= here;
            bytes -= here;
        }
    }

    std::span<const reference> items() const { return {_items, _count}; }
    std::uint64_t length() const { return _length; }

private:
    static_assert(std::is_trivially_destructible_v<reference>);

    std::size_t _count    = 0;
    std::uint64_t _length = 0;
    union {
        reference _items[Capacity];
    };
};

} // namespace ucxl::softhca
