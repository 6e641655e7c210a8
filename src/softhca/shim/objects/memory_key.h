// The commands that make the keys of verbs: for memory of the program, device memory and memory windows. They return 0
// or an errno.
#pragma once

#include <cstdint>

#include "verbs.h"

namespace ucxl::softhca
{

int make_region_key(device_file& file, const pd_object& pd, const pinned_memory& memory, std::uint64_t iova,
                    std::uint64_t length, std::uint32_t access, std::uint32_t& key);
// Replaces the memory of a key, which keeps its number.
int replace_region_key(device_file& file, const pd_object& pd, const pinned_memory& memory, std::uint64_t iova,
                       std::uint64_t length, std::uint32_t access, std::uint32_t key);
int make_device_memory_key(device_file& file, const pd_object& pd, std::uint64_t offset, std::uint64_t length,
                           std::uint32_t access, std::uint32_t& key);
int make_window_key(device_file& file, const pd_object& pd, unsigned entries, bool type_2, std::uint32_t& key);
int destroy_key(device_file& file, std::uint32_t key);

} // namespace ucxl::softhca
