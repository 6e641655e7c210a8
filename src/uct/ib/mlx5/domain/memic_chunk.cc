#include "memic_chunk.h"

#include <array>

#include "ucs/layout/build.h"
#include "uct/ib/mlx5/layout/bind.h"

namespace ucxl::mlx5
{

namespace
{

constexpr int every_access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t key_entries = 4; // the fewest that a key can have

} // namespace

result<std::unique_ptr<memic_chunk>> memic_chunk::create(domain& domain, address_source& addresses,
                                                         device_memory&& memory, std::uint64_t length, bool is_private)
{
    std::unique_ptr<memic_chunk> chunk(new memic_chunk(addresses, std::move(memory), length, is_private));
    chunk->_addresses.start = UCXL_TRY(addresses.reserve(length));
    UCXL_TRY(chunk->make_key(domain));
    return chunk;
}

result<void> memic_chunk::make_key(domain& domain)
{
    // ibv_reg_dm_mr(3): such a registration is zero based.
    _registration.reset(ibv_reg_dm_mr(domain.pd, _memory.handle(), 0, length(), every_access));
    if (_registration == nullptr) {
        return fail_errno("registering device memory");
    }
    const region_options options{.rights      = {.local_write   = true,
                                                 .remote_read   = true,
                                                 .remote_write  = true,
                                                 .remote_atomic = domain.found.atomics},
                                 .max_entries = key_entries,
                                 .address     = reinterpret_cast<std::uintptr_t>(address())};
    _key             = UCXL_TRY(region::create(domain, options));
    const auto whole = UCXL_TRY(make_contig(1, {.length = length()}));
    const std::array bases{source_base{.address = 0, .lkey = _registration->lkey}};
    UCXL_TRY(_key->prepare(whole, bases));
    const std::array keys{_key.get()};
    return bind_all(keys, false);
}

} // namespace ucxl::mlx5
