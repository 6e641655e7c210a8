// The layer over one mlx5 domain of stock UCX: windows are registered as hardware keys, everything else as before.
//
// The stock transports (rc_mlx5, dc_mlx5, ud_mlx5, rc_verbs) then send and receive windows like any memory: they read
// the key from the handle and the address from the request. The layer itself only translates UCX's operations; its
// parts do the work, each under its own lock (device_window_keys.h has their order).
//
// UCP calls the operations under its context's lock. Nothing here waits for UCP.
#pragma once

#include "abi/domain_layer.h"
#include "domain_card.h"
#include "domain_device.h"
#include "exchanged_memory.h"
#include "window_records.h"

#include <atomic>
#include <string>

namespace ucxl::mlx5
{

class window_domain final : public abi::domain_layer
{
public:
    window_domain(const abi::stock_domain& stock, ibv_pd* pd, std::string name, const window_directory& windows);
    ~window_domain() override;

    domain_device device;
    window_records records;
    domain_card card;
    exchanged_memory exchanged;

    // Peers lose the memory before others get it. False: it is not of this card.
    bool free_card_memory(const std::byte* address);

    void adjust(abi::memory_type_masks& masks) const override;
    ucs_status_t mem_alloc(std::size_t* length, void** address, const abi::allocation_request& request,
                           uct_mem_h* memh) override;
    ucs_status_t mem_free(uct_mem_h memh) override;
    ucs_status_t mem_reg(void* address, std::size_t length, const abi::mem_reg_params* params,
                         uct_mem_h* memh) override;
    ucs_status_t mem_dereg(const abi::mem_dereg_params* params) override;
    ucs_status_t mem_advise(uct_mem_h memh, void* address, std::size_t length, unsigned advice) override;
    ucs_status_t mkey_pack(uct_mem_h memh, void* address, std::size_t length, const abi::mkey_pack_params* params,
                           void* buffer) override;
    bool can_pack_element(uct_mem_h memh) const override;
    ucs_status_t mem_attach(const void* exported_key, abi::mem_attach_params* params, uct_mem_h* memh) override;
    std::size_t exported_key_length(std::size_t) const override { return exported_handle::length; }

private:
    result<window_handle*> register_range(const void* address, std::uint64_t length);
    ucs_status_t export_memory(uct_mem_h memh, void* address, std::size_t length, const abi::mkey_pack_params* params,
                               void* buffer);

    mutable std::atomic<bool> _offers_memory{false}; // UCX was told so
};

} // namespace ucxl::mlx5
