// The order in which the data of one message reaches memory, in the adversarial order. The message is cut into pieces,
// which land one after the other in any order, with the program running in between: only the completion tells that all
// of them have landed (InfiniBand specification volume 1, 9.5 and 10.8.3; ibv_reg_mr(3)).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "seeded_choice.h"

namespace ucxl::softhca
{

class piece_order
{
public:
    struct part {
        std::uint64_t begin;
        std::uint64_t end;
    };

    // `repeats`: the responder may execute it again. It executes duplicate reads again, and ignores other duplicates
    // (InfiniBand specification volume 1, 9.7.5.1).
    piece_order(std::uint64_t seed, std::uint64_t length, bool repeats)
    {
        seeded_choice choice(seed);
        const std::uint64_t least = (length + most_bytes - 1) / most_bytes;
        _count                    = std::max<std::uint64_t>(least, 1 + choice.below(4));
        _bytes                    = std::max<std::uint64_t>(1, (length + _count - 1) / _count);
        _count                    = std::max<std::uint64_t>(1, (length + _bytes - 1) / _bytes);
        _length                   = length;
        _first                    = choice.below(_count);
        _step                     = 1 + choice.below(_count);
        while (std::gcd(_step, _count) != 1) {
            _step++;
        }
        _all = _count + (repeats && choice.one_in(3) ? 1 + choice.below(_count) : 0);
    }

    std::uint64_t count() const { return _all; }

    // The piece that lands as number `at`.
    part operator[](std::uint64_t at) const
    {
        const std::uint64_t begin = (_first + at * _step) % _count * _bytes;
        return {begin, std::min(begin + _bytes, _length)};
    }

private:
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 22; // others wait for the lock

    std::uint64_t _count;
    std::uint64_t _bytes;
    std::uint64_t _length;
    std::uint64_t _first;
    std::uint64_t _step;
    std::uint64_t _all; // with the ones that land again
};

} // namespace ucxl::softhca
