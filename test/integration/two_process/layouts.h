// Layouts for transfers: random ones of an exact packed length, and the public API's handle of a spec.
#pragma once

#include "support/random.h"
#include "support/spec.h"

#include <ucp_layout.hpp>

namespace ucxl::two_process
{

// Of every kind, nested, with gaps, negative strides and up to `max_sources` sources; no byte twice. A few thousand
// blocks at most, whatever the length.
test::spec_ptr spec_of_length(test::random& random, std::uint64_t length, std::uint32_t max_sources = 3);

// Through ucp_layout_create.
ucx_layout::layout create_layout(const test::spec& of);

} // namespace ucxl::two_process
