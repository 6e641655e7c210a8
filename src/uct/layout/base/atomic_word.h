// Atomic operations on a word of packed bytes: where it is in memory, and what is done there.
//
// A word can be operated on if it is inside one block and aligned in memory to its size.
//
// Example: if (std::byte* word = word_in(layout, bases, offset, 8, why)) { old = apply(word, UCT_ATOMIC_OP_ADD, 5) }
#pragma once

#include "ucs/layout/walk.h"
#include "ucs/pack/pack_plan.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <uct/api/uct.h>

namespace ucxl
{

// Null, and a reason, if it is none. offset + length <= packed length.
inline std::byte* word_in(const layout& of, base_list bases, std::uint64_t offset, std::size_t length, const char*& why)
{
    block_cursor cursor(of);
    cursor.seek(offset);
    const placed_block block = cursor.block(length);
    std::byte* const word    = bases[block.source] + block.offset;
    if (block.length < length) {
        why = "are not inside one block of the layout";
        return nullptr;
    }
    if (reinterpret_cast<std::uintptr_t>(word) % length != 0) {
        why = "are not aligned in the memory under the window";
        return nullptr;
    }
    return word;
}

// The old value. Of a compare-and-swap the operand is what is expected, and the replacement what is swapped in.
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
        return operand; // the old value, whether it was equal or not
    case UCT_ATOMIC_OP_LAST:
        break;
    }
    return 0;
}

} // namespace ucxl
