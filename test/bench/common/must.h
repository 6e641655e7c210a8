// What a builder returned, or the end of a benchmark with its message.
#pragma once

#include "sys/error.h"

#include <stdexcept>
#include <utility>

namespace ucxl::bench
{

// Throws std::runtime_error.
template <typename T>
T must(result<T> made)
{
    if (!made) {
        throw std::runtime_error(made.error().message);
    }
    return std::move(*made);
}

} // namespace ucxl::bench
