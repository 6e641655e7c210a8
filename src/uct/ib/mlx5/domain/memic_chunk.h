// A piece of device memory with one key, which shows it at reserved addresses: an ibv_dm, its zero-based registration,
// and a region of one entry over that. The same key serves local and remote use. Allocations share it.
#pragma once

#include <memory>

#include "address_source.h"
#include "device_memory.h"
#include "granule_allocator.h"
#include "uct/ib/mlx5/layout/region.h"

namespace ucxl::mlx5
{

class memic_chunk
{
public:
    // The key shows the first `length` bytes of the memory; length is a multiple of 8.
    static result<std::unique_ptr<memic_chunk>> create(domain& domain, address_source& addresses,
                                                       device_memory&& memory, std::uint64_t length, bool is_private);

    std::byte* address() const { return _addresses.start; }
    std::uint64_t length() const { return rooms.length(); }
    std::uint32_t key() const { return _key->key(); }
    device_memory& memory() { return _memory; }
    // Made for one allocation, with which it ends.
    bool is_private() const { return _is_private; }

    granule_allocator rooms; // by offset from address()

private:
    struct reservation {
        reservation(address_source& from, std::uint64_t bytes) : source(from), length(bytes) {}
        reservation(const reservation&)            = delete;
        reservation& operator=(const reservation&) = delete;
        ~reservation()
        {
            if (start != nullptr) {
                source.release(start, length);
            }
        }

        address_source& source;
        std::byte* start = nullptr;
        std::uint64_t length;
    };

    memic_chunk(address_source& addresses, device_memory&& memory, std::uint64_t length, bool is_private)
        : rooms(length), _addresses(addresses, length), _memory(std::move(memory)), _is_private(is_private)
    {
    }

    result<void> make_key(domain& domain);

    // Ended from the last to the first: nothing may outlive what it shows.
    reservation _addresses;
    device_memory _memory;
    mr_owner _registration;
    std::unique_ptr<region> _key;
    bool _is_private;
};

} // namespace ucxl::mlx5
