// What the blocks of one iteration of a record allow.
#pragma once

#include "program.h"

#include <optional>
#include <span>

namespace ucxl
{

// Iterations of one column before the next column. Columns one after the other change the order of the blocks of a
// batch; where two of them may overlap, a batch is one iteration, so that a scatter leaves what comes last.
std::uint32_t batch_of(std::span<const record_part> parts, std::uint64_t cycle_length, std::size_t columns);
// Nothing if they are not words of one memory that lie near each other.
std::optional<record_map> map_of(std::span<const record_part> parts);

} // namespace ucxl
