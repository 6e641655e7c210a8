// Derives from the blocks of one iteration how a record can be moved.
#pragma once

#include "program.h"

#include <optional>
#include <span>

namespace ucxl
{

// Returns how many iterations of one column are moved before the next column. Moving column by column changes the order
// of the blocks in a batch. Where two of them may overlap, a batch is therefore one iteration, so that a scatter leaves
// the block that comes last.
std::uint32_t batch_of(std::span<const record_part> parts, std::uint64_t cycle_length, std::size_t columns);
// Returns nothing unless the parts are words of one memory that lie near each other.
std::optional<record_map> map_of(std::span<const record_part> parts);

} // namespace ucxl
