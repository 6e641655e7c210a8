// Memory of type UCS_MEMORY_TYPE_RDMA from stock ucp_mem_map(), which a network card gives from its own memory. The CPU
// cannot touch it, so it is written and read by put and get over an endpoint of this process to itself.
//
// Invariant: the ucp_process outlives it.
//
//     rdma_memory words = rdma_memory::create(own, 64);
//     words.write(0, bytes);
#pragma once

#include "ucp_process.h"

namespace ucxl::perf
{

class rdma_memory
{
public:
    // Throws a sentence that names the option -m and the remedy if there is no such memory.
    static rdma_memory create(ucp_process& owner, std::size_t length);

    rdma_memory() = default;
    rdma_memory(rdma_memory&& other) noexcept { swap(other); }
    rdma_memory& operator=(rdma_memory&& other) noexcept
    {
        swap(other);
        return *this;
    }
    ~rdma_memory();

    ucp_mem_h memh() const { return _memh; }
    std::uint64_t address() const { return _address; }

    void write(std::size_t offset, std::span<const std::byte> source);
    void read(std::size_t offset, std::span<std::byte> destination);

private:
    void swap(rdma_memory& other) noexcept;
    void flush();

    ucp_process* _owner    = nullptr;
    ucp_mem_h _memh        = nullptr;
    std::uint64_t _address = 0;
    tools::key_handle _key;
};

} // namespace ucxl::perf
