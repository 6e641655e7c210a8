#include "word_account.h"

#include <fmt/format.h>

namespace ucxl::perf
{

namespace
{

// A prime, so that addends do not repeat in step with the number of words or of outstanding operations.
constexpr std::uint64_t num_addends = 251;

std::uint64_t addend(std::uint64_t number)
{
    return 1 + number % num_addends;
}

std::uint64_t sum_of_addends(std::uint64_t count)
{
    std::uint64_t sum = 0;
    for (std::uint64_t number = 0; number < count; ++number) {
        sum += addend(number);
    }
    return sum;
}

std::string compare(std::uint64_t value, std::uint64_t expected)
{
    return value == expected ? std::string() : fmt::format("is {}, not {}", value, expected);
}

} // namespace

word_operands operands_of(test_kind kind, std::uint64_t number)
{
    switch (kind) {
    case test_kind::add:
        return {.operand = addend(number), .replacement = 0};
    case test_kind::swap:
        return {.operand = number + 1, .replacement = 0};
    case test_kind::cswap:
        return {.operand = number, .replacement = number + 1};
    default: // ucp_fadd, contended_fadd
        return {.operand = 1, .replacement = 0};
    }
}

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t fingerprint(std::uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

std::uint64_t fingerprint_of_range(std::uint64_t first, std::uint64_t count, std::uint64_t mask)
{
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        sum += fingerprint((first + i) & mask);
    }
    return sum;
}

std::string word_account::error(test_kind kind, std::uint64_t operations, std::uint64_t mask,
                                std::uint64_t final_value) const
{
    switch (kind) {
    case test_kind::add:
        return compare(final_value, sum_of_addends(operations) & mask);
    case test_kind::swap:
        return _fingerprints + fingerprint(final_value) == fingerprint_of_range(0, operations + 1, mask)
                   ? std::string()
                   : fmt::format("is {}, and the {} fetched values are not the other values that it had", final_value,
                                 operations);
    case test_kind::cswap:
        if (operations != 0 && _swapped == 0) {
            return fmt::format("is {}, and no operation found its old value", final_value);
        }
        break;
    default: // ucp_fadd
        break;
    }
    const std::uint64_t steps = kind == test_kind::cswap ? _swapped : operations;
    if (const std::string wrong = compare(final_value, steps & mask); !wrong.empty()) {
        return wrong;
    }
    return _fingerprints == fingerprint_of_range(0, steps, mask)
               ? std::string()
               : fmt::format("is {}, but its values before were not fetched once each", final_value);
}

} // namespace ucxl::perf
