// Memory for the bytes a spec describes, one buffer per source with margins around the bytes, and gather and scatter
// over it by the reference walker. Make two with the same seed, let the code under test work on one and the oracle on
// the other, and compare: gaps and margins count.
//
// Example: spec_memory actual(*of, seed), expected(*of, seed);
//          (*plan)->scatter(actual.bases(), 10, data.size(), data.data());
//          expected.scatter(10, data);
//          EXPECT_EQ(actual.first_difference(expected), "");
#pragma once

#include "spec.h"

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>

namespace ucxl::test
{

class spec_memory
{
public:
    // Filled with a pattern of the seed. `misalign`: added to where every base address falls. The resource outlives it.
    spec_memory(const spec& of, std::uint64_t seed, std::size_t misalign = 0,
                std::pmr::memory_resource* resource = std::pmr::get_default_resource());
    spec_memory(const spec_memory&)            = delete;
    spec_memory& operator=(const spec_memory&) = delete;

    // Base addresses by source. A base need not point into its buffer (offsets may all be negative, or large).
    std::span<std::byte* const> bases() const { return _bases; }
    std::uint64_t packed_length() const { return _packed_length; }

    std::vector<std::byte> gather() const { return gather(0, _packed_length); }
    std::vector<std::byte> gather(std::uint64_t offset, std::uint64_t length) const;
    void scatter(std::uint64_t offset, std::span<const std::byte> from);

    // "" if all buffers are equal, otherwise where they are not.
    std::string first_difference(const spec_memory& other) const;

private:
    struct given_back {
        void operator()(std::byte* bytes) const { resource->deallocate(bytes, length, 1); }

        std::pmr::memory_resource* resource;
        std::size_t length;
    };
    struct buffer {
        std::span<std::byte> bytes() const { return {memory.get(), memory.get_deleter().length}; }

        std::unique_ptr<std::byte[], given_back> memory; // a vector without optimisation goes through it byte by byte
        std::int64_t lb = 0;                             // offset from the base address of the first byte
    };

    // fn(bytes in a buffer, packed offset in the range) for [offset, offset + length)
    template <typename Fn>
    void for_range(std::uint64_t offset, std::uint64_t length, Fn&& fn) const;

    std::vector<segment> _segments;
    std::vector<buffer> _buffers;
    std::vector<std::byte*> _bases;
    std::uint64_t _packed_length = 0;
};

// So many bytes of the seed, for the packed side.
std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t length);

} // namespace ucxl::test
