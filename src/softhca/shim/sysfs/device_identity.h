// The vendor, model and firmware of the device, for answers that no command gives.
#pragma once

#include <cstdint>

namespace ucxl::softhca
{

inline constexpr std::uint32_t vendor_id      = 0x02c9;
inline constexpr std::uint32_t vendor_part_id = 4129; // ConnectX-7, so that libmlx5 and UCX know it

inline constexpr std::uint64_t firmware_major = 28;
inline constexpr std::uint64_t firmware_minor = 99;
inline constexpr std::uint64_t firmware_sub   = 1;
inline constexpr const char* firmware_text    = "28.99.0001";

} // namespace ucxl::softhca
