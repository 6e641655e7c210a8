#include "hash.h"

#include "wire_encode.h"

namespace ucxl
{

namespace
{

class hash_sink
{
public:
    void put(std::uint64_t bytes, unsigned count)
    {
        const unsigned before = _count % 8;
        _word |= bytes << (8 * before);
        _count += count;
        if (before + count >= 8) {
            mix(_word);
            _word = before == 0 ? 0 : bytes >> (8 * (8 - before));
        }
    }

    hashed_wire_form value()
    {
        if (_count % 8 != 0) {
            mix(_word);
        }
        mix(_count);
        return {_state, _count};
    }

private:
    void mix(std::uint64_t word)
    {
        _state = (_state ^ word) * 0x9fb21c651e98df25u;
        _state ^= _state >> 32;
    }

    std::uint64_t _state = 0x9e3779b97f4a7c15u;
    std::uint64_t _word  = 0;
    std::uint64_t _count = 0;
};

} // namespace

hashed_wire_form hash_content(const layout& layout)
{
    hash_sink sink;
    wire::encode(layout, sink);
    return sink.value();
}

} // namespace ucxl
