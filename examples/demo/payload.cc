#include "payload.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace examples
{

static constexpr std::align_val_t page{4096};

void memory_set::release::operator()(std::byte* memory) const
{
    ::operator delete(memory, page);
}

memory_set::memory_set(const pattern_side& side) : _bytes(side.array_bytes)
{
    for (std::size_t i = 0; i < _bytes.size(); ++i) {
        _memory.emplace_back(static_cast<std::byte*>(::operator new(_bytes[i], page)));
        _addresses.push_back(_memory.back().get());
        _bases.push_back(_memory.back().get() + side.base_offsets[i]);
    }
}

static std::uint64_t word_at(std::uint64_t seed, std::size_t array, std::size_t word)
{
    std::uint64_t x = seed * 0x9e3779b97f4a7c15u + (array << 40) + word;
    x               = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

// The contents of [offset, offset + to.size()) of an array.
static void make_bytes(std::uint64_t seed, std::size_t array, std::size_t offset, std::span<std::byte> to)
{
    for (std::size_t done = 0; done < to.size();) {
        const std::uint64_t word = word_at(seed, array, (offset + done) / sizeof(word));
        const std::size_t skip   = (offset + done) % sizeof(word);
        const std::size_t length = std::min(sizeof(word) - skip, to.size() - done);
        if (length == sizeof(word)) {
            std::memcpy(&to[done], &word, sizeof(word));
        } else {
            std::memcpy(&to[done], reinterpret_cast<const std::byte*>(&word) + skip, length);
        }
        done += length;
    }
}

void memory_set::fill(std::uint64_t seed)
{
    for (std::size_t array = 0; array < _bytes.size(); ++array) {
        make_bytes(seed, array, 0, {_addresses[array], _bytes[array]});
    }
}

static std::string place(const char* part, std::size_t array, std::size_t offset)
{
    return std::string(part) + " at byte " + std::to_string(offset) + " of array " + std::to_string(array);
}

// Walks the blocks of both sides together, in pieces that lie within one block of either side.
static std::string verify_blocks(memory_set& memory, const pattern& exchanged, std::uint64_t send_seed,
                                 std::uint64_t background_seed)
{
    const std::vector<block> sent = exchanged.send.blocks(), arrived = exchanged.receive.blocks();
    std::vector<std::byte> expected;
    std::string wrong;
    auto from             = sent.begin();
    std::size_t from_done = 0;
    for (const block& to : arrived) {
        for (std::size_t done = 0; done < to.length_bytes;) {
            if (from == sent.end()) {
                return "the receiver describes more bytes than the sender";
            }
            const std::size_t length = std::min(to.length_bytes - done, from->length_bytes - from_done);
            expected.resize(length);
            make_bytes(send_seed, from->array, from->offset_bytes + from_done, expected);
            const std::span found(memory.arrays()[to.array] + to.offset_bytes + done, length);
            if (wrong.empty() && !std::ranges::equal(found, expected)) {
                wrong = place("wrong data", to.array, to.offset_bytes + done);
            }
            make_bytes(background_seed, to.array, to.offset_bytes + done, found);
            done += length;
            from_done += length;
            if (from_done == from->length_bytes) {
                ++from;
                from_done = 0;
            }
        }
    }
    return wrong.empty() && from != sent.end() ? "the sender describes more bytes than the receiver" : wrong;
}

// After the blocks are reset to background, everything must be background.
static std::string verify_background(const memory_set& memory, std::uint64_t seed)
{
    constexpr std::size_t step = 4096;
    std::vector<std::byte> expected;
    for (std::size_t array = 0; array < memory.array_bytes().size(); ++array) {
        for (std::size_t offset = 0; offset < memory.array_bytes()[array]; offset += step) {
            expected.resize(std::min(step, memory.array_bytes()[array] - offset));
            make_bytes(seed, array, offset, expected);
            if (std::memcmp(memory.arrays()[array] + offset, expected.data(), expected.size()) != 0) {
                return place("a byte between the blocks was changed in the page", array, offset);
            }
        }
    }
    return {};
}

std::string verify(memory_set& memory, const pattern& exchanged, std::uint64_t send_seed, std::uint64_t background_seed)
{
    const std::string blocks = verify_blocks(memory, exchanged, send_seed, background_seed);
    const std::string rest   = verify_background(memory, background_seed);
    return blocks.empty() ? rest : blocks;
}

} // namespace examples
