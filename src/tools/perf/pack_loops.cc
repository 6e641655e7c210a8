#include "pack_loops.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ucxl::perf
{

namespace
{

// A length that the compiler knows, or 0 for a length from the list.
template <std::size_t Length>
std::size_t length_of(const pack_loops& list)
{
    if constexpr (Length != 0) {
        return Length;
    } else {
        return list.length();
    }
}

template <std::size_t Length>
void pack_strided(const pack_loops& list, std::byte* into)
{
    const std::size_t length = length_of<Length>(list);
    const std::byte* block   = list.first();
    for (std::size_t i = 0; i < list.count(); ++i, block += list.stride(), into += length) {
        std::memcpy(into, block, length);
    }
}

template <std::size_t Length>
void unpack_strided(const pack_loops& list, const std::byte* from)
{
    const std::size_t length = length_of<Length>(list);
    std::byte* block         = list.first();
    for (std::size_t i = 0; i < list.count(); ++i, block += list.stride(), from += length) {
        std::memcpy(block, from, length);
    }
}

template <std::size_t Length>
void pack_equal(const pack_loops& list, std::byte* into)
{
    const std::size_t length = length_of<Length>(list);
    for (const std::byte* const block : list.addresses()) {
        std::memcpy(into, block, length);
        into += length;
    }
}

template <std::size_t Length>
void unpack_equal(const pack_loops& list, const std::byte* from)
{
    const std::size_t length = length_of<Length>(list);
    for (std::byte* const block : list.addresses()) {
        std::memcpy(block, from, length);
        from += length;
    }
}

void pack_any(const pack_loops& list, std::byte* into)
{
    for (const memory_block& block : list.blocks()) {
        std::memcpy(into, block.address, block.length);
        into += block.length;
    }
}

void unpack_any(const pack_loops& list, const std::byte* from)
{
    for (const memory_block& block : list.blocks()) {
        std::memcpy(block.address, from, block.length);
        from += block.length;
    }
}

struct loop_pair {
    pack_loops::pack_function pack;
    pack_loops::unpack_function unpack;
};

template <std::size_t Length>
loop_pair loops_for(bool strided)
{
    return strided ? loop_pair{pack_strided<Length>, unpack_strided<Length>}
                   : loop_pair{pack_equal<Length>, unpack_equal<Length>};
}

using usual_lengths =
    std::index_sequence<1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 192, 256, 384, 512, 1024>;

template <std::size_t... Lengths>
loop_pair choose(std::index_sequence<Lengths...> /*lengths*/, std::size_t length, bool strided)
{
    loop_pair chosen = loops_for<0>(strided);
    ((length == Lengths ? void(chosen = loops_for<Lengths>(strided)) : void()), ...);
    return chosen;
}

} // namespace

pack_loops::pack_loops(std::span<const memory_block> blocks) : _blocks(blocks), _pack(pack_any), _unpack(unpack_any)
{
    if (blocks.empty() ||
        !std::ranges::all_of(blocks, [&](const memory_block& block) { return block.length == length(); })) {
        return;
    }
    _stride            = blocks.size() > 1 ? blocks[1].address - blocks[0].address : 0;
    const auto uneven  = [&](const memory_block& a, const memory_block& b) { return b.address - a.address != _stride; };
    const bool strided = std::ranges::adjacent_find(blocks, uneven) == blocks.end();
    if (!strided) {
        _addresses.reserve(blocks.size());
        std::ranges::transform(blocks, std::back_inserter(_addresses), &memory_block::address);
    }
    const loop_pair loops = choose(usual_lengths{}, length(), strided);
    _pack                 = loops.pack;
    _unpack               = loops.unpack;
}

} // namespace ucxl::perf
