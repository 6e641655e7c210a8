// Blocks of memory as stock UCX's users keep them.
#pragma once

#include "examples/demo/pattern.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ucxl::bench
{

struct memory_block {
    std::byte* begin;
    std::size_t length;
};

// Copies between blocks, one after the other, and packed bytes. Quick if each call begins where the last one ended.
class block_cursor
{
public:
    explicit block_cursor(std::span<const memory_block> blocks);

    std::size_t length() const { return _length; }
    // Returns how many bytes there were.
    std::size_t gather(std::size_t offset, std::span<std::byte> to);
    void scatter(std::size_t offset, std::span<const std::byte> from);

private:
    template <typename Fn>
    std::size_t move(std::size_t offset, std::size_t length, Fn&& copy);
    void seek(std::size_t offset);

    std::span<const memory_block> _blocks;
    std::size_t _length = 0;
    std::size_t _block = 0, _into = 0, _offset = 0; // where the last call ended
};

// Bytes that are contiguous both at the sender and at the receiver.
struct common_piece {
    std::uint32_t from_array;
    std::size_t from_offset;
    std::uint32_t to_array;
    std::size_t to_offset;
    std::size_t length;

    bool operator==(const common_piece&) const = default;
};

// In packed order, neighbours joined. Throws std::runtime_error if the sides have different lengths.
std::vector<common_piece> common_pieces(const examples::pattern& exchanged);

} // namespace ucxl::bench
