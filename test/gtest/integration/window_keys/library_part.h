// The part of a packed memory handle that the domain of the library wrote.
//
// Example: auto packed = exported(memh); const auto key = unpacked(packed).key;
#pragma once

#include "uct/ib/mlx5/domain/exported_handle.h"

#include <span>

namespace ucxl::test
{

// Throws std::runtime_error if there is none.
std::span<std::byte, mlx5::exported_handle::length> part_of_the_library(std::span<std::byte> packed);
mlx5::exported_handle unpacked(std::span<std::byte> packed);

} // namespace ucxl::test
