// What one word went through, and whether its final value and the fetched values can be right. A word starts at 0, and
// its operation number j (from 0) has the operands of operands_of(kind, j).
//
// The order in which outstanding operations are executed does not matter:
//
//     ucp_add     the final value is the sum of the operands
//     ucp_fadd    each of 0 .. n-1 was fetched once, and the final value is n
//     ucp_swap    each of 0 .. n was fetched once, or is the final value
//     ucp_cswap   operation j replaces j by j+1; those that found j are a chain 0, 1, .. up to the final value
//
// Sets of fetched values are compared by sums of fingerprints, so they cost no memory and little time.
//
//     word_account account;
//     account.fetched(test_kind::fadd, 0, word_mask(8), 0);
//     account.error(test_kind::fadd, 1, word_mask(8), 1); // ""
#pragma once

#include "test_kinds.h"

#include <string>

namespace ucxl::perf
{

struct word_operands {
    std::uint64_t operand;     // the addend, the new value, or the value to compare with
    std::uint64_t replacement; // ucp_cswap: the new value
};

word_operands operands_of(test_kind kind, std::uint64_t number);

constexpr std::uint64_t word_mask(std::size_t word_bytes)
{
    return word_bytes == sizeof(std::uint32_t) ? UINT32_MAX : UINT64_MAX;
}

std::uint64_t fingerprint(std::uint64_t value);
// Of first, first + 1, ... first + count - 1, as words of this mask.
std::uint64_t fingerprint_of_range(std::uint64_t first, std::uint64_t count, std::uint64_t mask);

class word_account
{
public:
    // Operation `number` on this word fetched `value`.
    void fetched(test_kind kind, std::uint64_t number, std::uint64_t mask, std::uint64_t value)
    {
        if (kind == test_kind::cswap) {
            if (value != (operands_of(kind, number).operand & mask)) {
                return; // the word had another value and kept it
            }
            ++_swapped;
        }
        _fingerprints += fingerprint(value);
    }

    // What is wrong after so many operations, or "".
    std::string error(test_kind kind, std::uint64_t operations, std::uint64_t mask, std::uint64_t final_value) const;

private:
    std::uint64_t _fingerprints = 0;
    std::uint64_t _swapped      = 0;
};

} // namespace ucxl::perf
