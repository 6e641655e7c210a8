#include "hash.h"

#include "wire_encode.h"

#include <cstring>

namespace ucxl
{

namespace
{

class hash_state
{
public:
    void mix(std::uint64_t word)
    {
        _state = (_state ^ word) * 0x9fb21c651e98df25u;
        _state ^= _state >> 32;
    }

    // So many bytes, of which only the last ones of all may be less than whole words.
    void mix(const std::byte* bytes, std::size_t count)
    {
        for (; count >= 8; count -= 8, bytes += 8) {
            mix(wire::word_at(bytes));
        }
        if (count > 0) {
            std::byte last[8] = {};
            std::memcpy(last, bytes, count);
            mix(wire::word_at(last));
        }
    }

    std::uint64_t value() const { return _state; }

private:
    std::uint64_t _state = 0x9e3779b97f4a7c15u;
};

// Collects bytes, so that whole words are mixed. Each number is written as a word, whatever its length.
class hash_sink
{
public:
    std::byte* room(std::size_t) { return _bytes + _count; }

    void wrote(std::size_t count)
    {
        _count += count;
        if (_count >= capacity) {
            const std::size_t num_whole = _count / 8 * 8;
            _hash.mix(_bytes, num_whole);
            _num_mixed += num_whole;
            _count -= num_whole;
            std::memcpy(_bytes, _bytes + num_whole, 8);
        }
    }

    void put(std::uint64_t bytes, unsigned count)
    {
        wire::put_word(room(8), bytes);
        wrote(count);
    }

    hashed_wire_form value()
    {
        _hash.mix(_bytes, _count);
        _hash.mix(_num_mixed + _count);
        return {_hash.value(), _num_mixed + _count};
    }

private:
    static constexpr std::size_t capacity = 1024; // what is mixed at once, at least
    static constexpr std::size_t largest  = 1024; // that anybody asks room for

    hash_state _hash;
    std::uint64_t _num_mixed = 0;
    std::size_t _count       = 0;
    std::byte _bytes[capacity + largest + 8]; // those that are not mixed yet
};

} // namespace

hashed_wire_form hash_content(const layout& layout)
{
    hash_sink sink;
    wire::encode(layout, sink);
    return sink.value();
}

hashed_wire_form hash_wire_form(std::span<const std::byte> bytes)
{
    hash_state hash;
    hash.mix(bytes.data(), bytes.size());
    hash.mix(bytes.size());
    return {hash.value(), bytes.size()};
}

} // namespace ucxl
