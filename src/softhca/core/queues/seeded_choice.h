// Choices of the adversarial order: the same for the same seed. Sebastiano Vigna's SplitMix64, because its state is one
// number.
#pragma once

#include <cstdint>

namespace ucxl::softhca
{

class seeded_choice
{
public:
    explicit seeded_choice(std::uint64_t seed) : _state(seed) {}

    std::uint64_t next()
    {
        _state += 0x9e3779b97f4a7c15;
        std::uint64_t mixed = _state;
        mixed               = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
        mixed               = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        return mixed ^ (mixed >> 31);
    }

    // A number from 0 to `count` - 1.
    std::uint64_t below(std::uint64_t count) { return next() % count; }
    bool one_in(std::uint64_t count) { return below(count) == 0; }

private:
    std::uint64_t _state;
};

} // namespace ucxl::softhca
