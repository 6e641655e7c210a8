// Arithmetic on untrusted 64-bit values. On overflow a function returns false and leaves the result unchanged.
//
// Example: if (!checked::mul(count, stride, span)) { return fail(errc::exceeds_limit, ...); }
#pragma once

#include "limits.h"

#include <cstdint>

namespace ucxl::checked
{

template <typename T>
[[nodiscard]] bool add(T a, T b, T& sum)
{
    T value;
    if (__builtin_add_overflow(a, b, &value)) {
        return false;
    }
    sum = value;
    return true;
}

template <typename T>
[[nodiscard]] bool sub(T a, T b, T& difference)
{
    T value;
    if (__builtin_sub_overflow(a, b, &value)) {
        return false;
    }
    difference = value;
    return true;
}

// The mixed signedness is intended: count * stride.
template <typename A, typename B, typename T>
[[nodiscard]] bool mul(A a, B b, T& product)
{
    T value;
    if (__builtin_mul_overflow(a, b, &value)) {
        return false;
    }
    product = value;
    return true;
}

[[nodiscard]] inline bool is_offset(std::int64_t value)
{
    return value >= -limits::max_offset && value <= limits::max_offset;
}

} // namespace ucxl::checked
