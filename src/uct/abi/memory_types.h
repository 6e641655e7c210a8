// UCX's cache of memory types, which tells UCP what an address is before it asks any memory domain.
#pragma once

#include <cstddef>

namespace ucxl::abi
{

// Notes [address, address + length) as memory of type RDMA. Does nothing if the user turned the cache off.
void announce_rdma_memory(const void* address, std::size_t length);

void forget_memory(const void* address, std::size_t length);

// Whether the cache takes the byte for memory of type RDMA.
bool is_known_as_rdma_memory(const void* address);

} // namespace ucxl::abi
