// Layouts for transfers: random layouts of an exact packed length, and the public API's handle of a spec.
#pragma once

#include "support/random.h"
#include "support/spec.h"

#include <ucp_layout.hpp>

namespace ucxl::two_process
{

// Layouts of every kind, nested, with gaps, negative strides and up to `max_sources` sources. No byte is described
// twice. At most a few thousand blocks, whatever the length.
test::spec_ptr spec_of_length(test::random& random, std::uint64_t length, std::uint32_t max_sources = 3);

// Through ucp_layout_create.
ucx_layout::layout create_layout(const test::spec& spec);

} // namespace ucxl::two_process
