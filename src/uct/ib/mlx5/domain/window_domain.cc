#include "window_domain.h"

#include "abi/log.h"
#include "device_window_keys.h"
#include "key_mark.h"
#include "sys/rollback.h"
#include "ucs/sys/status.h"

#include <algorithm>
#include <cstring>

namespace ucxl::mlx5
{

window_domain::window_domain(const abi::stock_domain& stock, ibv_pd* pd, std::string name,
                             const window_directory& windows)
    : domain_layer(stock), device(pd, std::move(name), windows), records(device), card(device),
      exchanged(device, records)
{
    device_window_keys::instance().add(this);
}

window_domain::~window_domain()
{
    device_window_keys::instance().remove(this);
    if (_offers_memory) {
        --device_window_keys::instance().window_domain_offers;
    }
}

void window_domain::adjust(abi::memory_type_masks& masks) const
{
    const std::uint64_t copied = device.windows().types_of_copied();
    masks.reg                  = (masks.reg & ~copied) | UCS_BIT(UCS_MEMORY_TYPE_RDMA);
    masks.dmabuf &= ~copied;
    if ((masks.alloc & UCS_BIT(UCS_MEMORY_TYPE_RDMA)) != 0 && !_offers_memory.exchange(true)) {
        ++device_window_keys::instance().window_domain_offers;
    }
}

result<window_handle*> window_domain::register_range(const void* address, std::uint64_t length)
{
    if (device.windows().is_card_memory(address, length)) {
        // Another card cannot reach this memory. UCP registers it there nevertheless; peers are told not to use the
        // key, and local use is copied.
        const auto own     = card.find(address, length);
        auto* const handle = UCXL_TRY(handle_table::instance().take());
        handle->lkey       = own ? own->key : no_key;
        handle->rkey       = handle->lkey;
        handle->copied_for = own ? nullptr : &device;
        if (own) {
            handle->card_memory = {static_cast<std::byte*>(const_cast<void*>(address)), length};
        }
        return handle;
    }
    return records.make_handle(address, length);
}

ucs_status_t window_domain::mem_reg(void* address, std::size_t length, const abi::mem_reg_params* params,
                                    uct_mem_h* memh)
{
    // UCP registers all addresses at once for its global virtual addresses (UCX_GVA_ENABLE).
    if (address == nullptr || !device.windows().in_arena(address, length)) {
        const auto status = domain_layer::mem_reg(address, length, params, memh);
        if (status == UCS_OK) {
            const auto start = reinterpret_cast<std::uintptr_t>(address);
            exchanged.note_registration(*memh, {.start = start, .end = start + length});
        }
        return status;
    }
    return guarded("ucp_mem_map of a window", [&] {
        const bool is_meant = device.windows().note_registration(this, address, length);
        const auto handle   = is_meant ? register_range(address, length) : handle_table::instance().take();
        if (!handle) {
            return log_error("ucp_mem_map of a window", handle.error());
        }
        *memh = *handle;
        return UCS_OK;
    });
}

bool window_domain::free_card_memory(const std::byte* address)
{
    const auto memory = card.find(address, 1);
    if (!memory) {
        return false;
    }
    records.drop_own_keys_in({memory->address, memory->length});
    return card.free(address);
}

// UCP has no way to pass a hint: who asks for memory of type RDMA gets memory of the card or an error.
ucs_status_t window_domain::mem_alloc(std::size_t* length, void** address, const abi::allocation_request& request,
                                      uct_mem_h* memh)
{
    if (request.type != UCS_MEMORY_TYPE_RDMA) {
        return domain_layer::mem_alloc(length, address, request, memh);
    }
    constexpr auto name = "ucp_mem_map of memory of a network card";
    return guarded(name, [&] {
        if (const auto memory = card.get(); !memory) {
            ucs_debug("%s: %s", name, memory.error().message.c_str());
            return UCS_ERR_UNSUPPORTED;
        }
        const auto handle = handle_table::instance().take();
        if (!handle) {
            return log_error(name, handle.error());
        }
        rollback undo([&] { handle_table::instance().give_back(*handle); });
        const auto allocated = card.allocate(std::max<std::uint64_t>(*length, 1));
        if (!allocated) {
            const error& reason = allocated.error();
            if ((request.flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) != 0) {
                ucs_debug("%s: %s", name, reason.message.c_str());
                return to_status(reason.code);
            }
            return log_error(name, reason);
        }
        undo.cancel();
        (*handle)->lkey = (*handle)->rkey = allocated->key;
        (*handle)->card_memory            = {allocated->address, allocated->length};
        *length                           = allocated->length;
        *address                          = allocated->address;
        *memh                             = *handle;
        return UCS_OK;
    });
}

ucs_status_t window_domain::mem_free(uct_mem_h memh)
{
    if (!handle_table::instance().holds(memh)) {
        return domain_layer::mem_free(memh);
    }
    auto& handle                  = *static_cast<window_handle*>(memh);
    const std::byte* const memory = handle.card_memory.data();
    records.give_back(handle);
    free_card_memory(memory);
    return UCS_OK;
}

ucs_status_t window_domain::mem_dereg(const abi::mem_dereg_params* params)
{
    if (!handle_table::instance().holds(params->memh)) {
        exchanged.forget_registration(params->memh);
        return domain_layer::mem_dereg(params);
    }
    auto* const handle    = static_cast<window_handle*>(params->memh);
    const bool has_flags  = (params->field_mask & abi::mem_dereg_params::has_flags) != 0;
    const bool invalidate = has_flags && (params->flags & abi::mem_dereg_params::invalidate) != 0;
    exchanged.end_import(*handle);
    records.give_back(*handle);
    if (invalidate && (params->field_mask & abi::mem_dereg_params::has_completion) != 0 && params->comp != nullptr) {
        uct_completion_t& done = *params->comp;
        if (--done.count == 0) {
            done.func(&done);
        }
    }
    return UCS_OK;
}

// Advice for the memory below would reach memory of the layout's gaps as well.
ucs_status_t window_domain::mem_advise(uct_mem_h memh, void* address, std::size_t length, unsigned advice)
{
    return handle_table::instance().holds(memh) ? UCS_OK : domain_layer::mem_advise(memh, address, length, advice);
}

namespace
{

// A peer would take an atomic key from index 0xff0000 on for the mark of a window. Without one UCX does atomic
// operations by the key for puts and gets.
void drop_high_atomic_key(const char* device, void* buffer)
{
    std::uint64_t packed = 0;
    std::memcpy(&packed, buffer, sizeof(packed));
    if (host_of(packed)) {
        packed = unmarked_key(packed);
        std::memcpy(buffer, &packed, sizeof(packed));
        ucs_debug("%s: an atomic key with a high index is not handed out", device);
    }
}

} // namespace

ucs_status_t window_domain::mkey_pack(uct_mem_h memh, void* address, std::size_t length,
                                      const abi::mkey_pack_params* params, void* buffer)
{
    const unsigned flags = abi::pack_flags(params);
    if ((flags & abi::mkey_pack_params::exported) != 0) {
        return guarded("ucp_memh_pack for export",
                       [&] { return export_memory(memh, address, length, params, buffer); });
    }
    if (!handle_table::instance().holds(memh)) {
        const ucs_status_t status = domain_layer::mkey_pack(memh, address, length, params, buffer);
        if (status == UCS_OK) {
            drop_high_atomic_key(device.name(), buffer);
        }
        return status;
    }
    constexpr auto name = "ucp_rkey_pack of a window";
    auto& handle        = *static_cast<window_handle*>(memh);
    return guarded(name, [&] {
        const std::uint64_t packed = records.packed_key(handle, flags);
        std::memcpy(buffer, &packed, sizeof(packed));
        return UCS_OK;
    });
}

// A plain buffer that cannot have a key of the pool gets what stock UCX exports.
ucs_status_t window_domain::export_memory(uct_mem_h memh, void* address, std::size_t length,
                                          const abi::mkey_pack_params* params, void* buffer)
{
    constexpr auto name = "ucp_memh_pack for export";
    const std::span<std::byte, exported_handle::length> packed(static_cast<std::byte*>(buffer),
                                                               exported_handle::length);
    const bool is_window  = handle_table::instance().holds(memh);
    const bool has_others = abi::pack_flags(params) != abi::mkey_pack_params::exported;
    if (is_window && has_others) {
        ucs_error("%s: a key that can be taken away from peers cannot be exported", name);
        return UCS_ERR_INVALID_PARAM;
    }
    if (is_window || !has_others) {
        const auto handle = is_window ? exchanged.export_window(*static_cast<window_handle*>(memh))
                                      : exchanged.export_buffer(memh, address, length);
        if (handle) {
            pack(*handle, packed);
            device.show();
            return UCS_OK;
        }
        if (is_window) {
            return log_error(name, handle.error());
        }
        ucs_debug("%s: a key of UCX, because %s", name, handle.error().message.c_str());
    }
    std::ranges::fill(packed, std::byte{0});
    return domain_layer::mkey_pack(memh, address, length, params, buffer);
}

ucs_status_t window_domain::mem_attach(const void* exported_key, abi::mem_attach_params* params, uct_mem_h* memh)
{
    const bool has_size = (params->field_mask & abi::mem_attach_params::has_mkey_size) != 0;
    if (!is_exported_handle(exported_key, has_size ? std::optional(params->mkey_size) : std::nullopt)) {
        return domain_layer::mem_attach(exported_key, params, memh);
    }
    // UCP tries all domains that the handle may belong to, and logs it if none fits.
    constexpr auto name = "ucp_mem_map of exported memory";
    return guarded(name, [&] {
        const auto unpacked = unpack_exported(exported_key);
        const auto handle   = unpacked ? handle_table::instance().take() : std::unexpected(unpacked.error());
        if (!handle) {
            ucs_debug("%s: %s", name, handle.error().message.c_str());
            return to_status(handle.error().code);
        }
        rollback undo([&] { handle_table::instance().give_back(*handle); });
        if (const auto imported = exchanged.import(**handle, *unpacked); !imported) {
            ucs_debug("%s: %s", name, imported.error().message.c_str());
            return to_status(imported.error().code);
        }
        undo.cancel();
        *memh = *handle;
        return UCS_OK;
    });
}

bool window_domain::can_pack_element(uct_mem_h memh) const
{
    return !handle_table::instance().holds(memh);
}

} // namespace ucxl::mlx5
