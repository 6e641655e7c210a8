// Contents that identify their place: every byte is a function of a seed, its array and its offset. A receiver can
// compute the expected bytes without any message and without the code under test.
#pragma once

#include "pattern.h"

#include <memory>
#include <string>

namespace examples
{

// The arrays of one side, page aligned as large allocations are.
class memory_set
{
public:
    explicit memory_set(const pattern_side& side);

    array_list arrays() const { return _addresses; }
    std::span<const std::size_t> array_bytes() const { return _bytes; }
    // Base addresses for ucp_layout_map.
    std::span<void* const> bases() const { return _bases; }
    void fill(std::uint64_t seed);

private:
    struct release {
        void operator()(std::byte* memory) const;
    };
    std::vector<std::unique_ptr<std::byte[], release>> _memory;
    std::vector<std::byte*> _addresses;
    std::vector<void*> _bases;
    std::vector<std::size_t> _bytes;
};

// Checks that `memory` holds the blocks of a sender filled with send_seed, and elsewhere still its own background.
// Returns an empty text, or the first difference in words. Afterwards `memory` is all background again.
std::string verify(memory_set& memory, const pattern& exchanged, std::uint64_t send_seed,
                   std::uint64_t background_seed);

} // namespace examples
