// The translation entries of one key: writes them, and the sums that let a walk start anywhere.
//
// For each KLM there is the sum of the bytes of the list up to its end; for each entry of a repeat block, the bytes of
// the entry in one turn up to its end. For the header of a repeat block there is the length of a turn, or 0 when the
// block contradicts itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// Writes entries of a key, starting at its entry `offset`, and updates what follows from them: entries_used, and the
// backing (klm, ksm or repeat, by the key's mode and its first entry). Returns false and changes nothing when they do
// not fit in the key's room or the mode has no entries. The entries themselves are checked when they are used. Only
// whole entries count.
bool store_translations(arena& memory, mkey_record& key, std::uint32_t offset, std::span<const std::byte> entries);

// Whether entries at the start of a list make it a repeat block.
bool is_repeat_block(std::span<const std::byte> entries);

// The entries of the key, as they were written.
std::span<const std::byte> translations(const arena& memory, const mkey_record& key);

} // namespace ucxl::softhca
