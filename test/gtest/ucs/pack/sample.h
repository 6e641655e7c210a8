// A layout with its bytes one by one in packed order, as the oracle of test/gtest/support has them, and memory to try
// it on.
#pragma once

#include "guarded.h"

#include "support/random_spec.h"

#include <memory>
#include <vector>

namespace ucxl::test
{

struct byte_place {
    std::uint32_t source;
    std::int64_t offset;
};

struct sample {
    layout_ptr what;
    std::vector<byte_place> bytes;
};

sample sample_of(const spec& described);
// Of up to some thousand bytes.
spec_ptr draw_sample(random& from);

inline std::uint64_t pick(random& from, std::uint64_t low, std::uint64_t high)
{
    return low + from.below(high - low + 1);
}

std::vector<std::byte> random_bytes(random& from, std::size_t length);

// Memory for every source of a layout, exactly as long as its bytes need, between guard pages, with random contents.
class sample_memory
{
public:
    sample_memory(const sample& of, guard_side exact, random& from);

    const std::vector<std::byte*>& bases() const { return _bases; }
    std::vector<std::vector<std::byte>> contents() const;
    // The bytes [offset, offset + length) of the sample, one by one.
    std::vector<std::byte> read(const sample& of, std::uint64_t offset, std::uint64_t length) const;
    // What contents() should be after a scatter.
    std::vector<std::vector<std::byte>> after_write(const sample& of, std::uint64_t offset,
                                                    const std::vector<std::byte>& data) const;

private:
    std::vector<std::unique_ptr<guarded_memory>> _memory;
    std::vector<std::byte*> _bases;
    std::vector<std::int64_t> _low;
};

} // namespace ucxl::test
