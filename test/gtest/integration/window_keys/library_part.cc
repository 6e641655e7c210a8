#include "library_part.h"

#include "support/check.h"

#include <algorithm>
#include <array>

namespace ucxl::test
{

std::span<std::byte, mlx5::exported_handle::length> part_of_the_library(std::span<std::byte> packed)
{
    // No other part of it begins with a key that no device has.
    const std::array<std::byte, 4> mark{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
    const auto found = std::ranges::search(packed, mark);
    check(mlx5::exported_handle::length <= static_cast<std::size_t>(packed.end() - found.begin()),
          "no handle of the library");
    return std::span<std::byte, mlx5::exported_handle::length>(found.begin(), mlx5::exported_handle::length);
}

mlx5::exported_handle unpacked(std::span<std::byte> packed)
{
    const auto handle = mlx5::unpack_exported(part_of_the_library(packed).data());
    check(handle.has_value(), "the handle cannot be unpacked");
    return *handle;
}

} // namespace ucxl::test
