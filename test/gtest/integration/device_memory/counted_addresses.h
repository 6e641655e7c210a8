// Reserved addresses for pools, counted, also for threads. It refuses on demand.
#pragma once

#include <atomic>
#include <cstdlib>

#include <sys/mman.h>

#include "uct/ib/mlx5/domain/address_source.h"

namespace ucxl::test
{

class counted_addresses : public mlx5::address_source
{
public:
    result<std::byte*> reserve(std::uint64_t length) override
    {
        if (refuses) {
            return fail(errc::no_memory, "no addresses for this test");
        }
        void* const start = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED) {
            return fail_errno("addresses");
        }
        ++reserved;
        bytes += length;
        return static_cast<std::byte*>(start);
    }

    void release(std::byte* address, std::uint64_t length) noexcept override
    {
        if (munmap(address, length) != 0) {
            std::abort();
        }
        bytes -= length;
    }

    bool refuses = false;
    std::atomic<std::uint64_t> reserved{0}; // so often
    std::atomic<std::uint64_t> bytes{0};    // reserved now
};

} // namespace ucxl::test
