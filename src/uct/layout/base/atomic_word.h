// Finds a word of packed bytes in memory and operates on it atomically.
//
// The word must lie inside one block and be aligned in memory to its size.
//
// Example: if (std::byte* word = word_in(layout, bases, offset, 8, reason)) { old = apply(word, UCT_ATOMIC_OP_ADD, 5) }
#pragma once

#include "ucs/layout/walk.h"
#include "ucs/pack/pack_plan.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <uct/api/uct.h>

namespace ucxl
{

// Returns null and sets the reason if there is no such word. offset + length <= packed length.
inline std::byte* word_in(const layout& layout, base_list bases, std::uint64_t offset, std::size_t length,
                          const char*& reason)
{
    block_cursor cursor(layout);
    cursor.seek(offset);
    const placed_block block = cursor.block(length);
    std::byte* const word    = bases[block.source] + block.offset;
    if (block.length < length) {
        reason = "are not inside one block of the layout";
        return nullptr;
    }
    if (reinterpret_cast<std::uintptr_t>(word) % length != 0) {
        reason = "are not aligned in the memory under the window";
        return nullptr;
    }
    return word;
}

// Returns the old value. For a compare-and-swap, `operand` is the expected value and `replacement` the new one.
template <typename Word>
Word apply(std::byte* word, uct_atomic_op_t operation, Word operand, Word replacement = 0)
{
    const std::atomic_ref<Word> at(*reinterpret_cast<Word*>(word));
    switch (operation) {
    case UCT_ATOMIC_OP_ADD:
        return at.fetch_add(operand);
    case UCT_ATOMIC_OP_AND:
        return at.fetch_and(operand);
    case UCT_ATOMIC_OP_OR:
        return at.fetch_or(operand);
    case UCT_ATOMIC_OP_XOR:
        return at.fetch_xor(operand);
    case UCT_ATOMIC_OP_SWAP:
        return at.exchange(operand);
    case UCT_ATOMIC_OP_CSWAP:
        at.compare_exchange_strong(operand, replacement);
        return operand; // the old value, equal or not
    case UCT_ATOMIC_OP_LAST:
        break;
    }
    return 0;
}

} // namespace ucxl
