// The translation entries of one key: writing them, and what is derived from them so that a walk can start anywhere.
//
// Beside each entry of a list of KLMs stands how many bytes the list has up to the end of that entry; beside each entry
// of a repeat block, how many one turn has. Beside the header of a repeat block stands the length of a turn, or 0 when
// the block contradicts itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arena.h"

namespace ucxl::softhca
{

// Writes entries of a key, from its entry `offset` on, and brings what is derived from them up to date: entries_used,
// and the backing (klm, ksm or repeat, by the key's mode and its first entry). False, and nothing changed, when they do
// not fit in the key's room or the mode has no entries. The entries themselves are checked when they are used. Their
// count is that of whole ones.
bool store_translations(arena& memory, mkey_record& key, std::uint32_t offset, std::span<const std::byte> entries);

// Whether entries for the beginning of a list make it a repeat block.
bool is_repeat_block(std::span<const std::byte> entries);

// Those the key has, as they were written.
std::span<const std::byte> translations(const arena& memory, const mkey_record& key);

} // namespace ucxl::softhca
