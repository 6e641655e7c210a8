// UCX's cache of memory types, which tells UCP what an address is before it asks any memory domain.
#pragma once

#include <ucs/memory/memory_type.h>

#include <cstddef>

namespace ucxl::abi
{

// Notes [address, address + length) as memory of this type. Does nothing if the user turned the cache off.
void announce_memory(const void* address, std::size_t length, ucs_memory_type_t type);

void forget_memory(const void* address, std::size_t length);

// Whether the cache takes the byte for memory of this type.
bool is_known_as(ucs_memory_type_t type, const void* address);

} // namespace ucxl::abi
