// Random descriptor trees of every kind, nested, with negative and zero strides, empty parts and several sources.
//
// Example: test::random random(seed); spec_ptr of = random_spec(random, {.max_bytes = 4096, .overlapping =
// overlapping::never});
#pragma once

#include "random.h"
#include "spec.h"

namespace ucxl::test
{

enum class overlapping {
    anyhow, // as it happens: strides and offsets are free
    never,  // no byte twice
    always, // at least one byte twice (of a layout of two bytes or more)
};

struct random_options {
    std::uint64_t max_bytes             = 2048; // packed
    std::uint64_t max_blocks            = 256;  // as described
    unsigned max_depth                  = 4;    // descriptors above a block
    std::uint32_t num_sources           = 1;    // sources 0 .. num_sources - 1 may be used
    bool negative_strides               = true;
    bool empty_parts                    = true; // lengths, counts of 0
    bool resized_items                  = true;
    ucxl::test::overlapping overlapping = overlapping::anyhow;
};

spec_ptr random_spec(random& from, const random_options& options = {});

} // namespace ucxl::test
