#include "exchanged_memory.h"

#include "abi/log.h"
#include "device_window_keys.h"
#include "domain_options.h"
#include "imported_windows.h"
#include "sys/rollback.h"

namespace ucxl::mlx5
{

void exchanged_memory::forget_registration(const void* memh) noexcept
{
    if (exported_keys* const exports = _exports; exports != nullptr && exports->remove(memh)) {
        _device.show();
    }
    _ranges.remove(memh);
}

result<exported_keys*> exchanged_memory::exports()
{
    if (exported_keys* const known = _exports.load(std::memory_order_acquire)) {
        return known;
    }
    const auto made = UCXL_TRY(_device.part(&open_device::exports, [](open_device& device) {
        return exported_keys::create(device.keys, read_key_options().for_export());
    }));
    _exports.store(made, std::memory_order_release);
    _device.show();
    return made;
}

result<exported_handle> exchanged_memory::export_window(window_handle& handle)
{
    return _records.export_handle(handle, *UCXL_TRY(exports()));
}

result<exported_handle> exchanged_memory::export_buffer(uct_mem_h memh, const void* address, std::size_t length)
{
    const auto registered = _ranges.find(memh);
    const auto start      = reinterpret_cast<std::uintptr_t>(address);
    if (!registered || start < registered->start || length > registered->end - start) {
        return fail(errc::unsupported, "the memory was not registered by its address");
    }
    // The kernel fetches pages for keys that it made or can follow, and it does not know repeat blocks.
    const abi::ib_registration known = abi::ib_registration_of(memh);
    if (known.is_paged_on_demand) {
        return fail(errc::unsupported, "the memory is registered with on-demand paging");
    }
    return UCXL_TRY(exports())->add(memh, registered->start, registered->length(), known.lkey);
}

bool exchanged_memory::exports_with(const access_token& token) const
{
    const exported_keys* const exports = _exports.load(std::memory_order_acquire);
    return exports != nullptr && exports->has_token(token);
}

result<void> exchanged_memory::show_imported(window_handle& handle, const exported_handle& imported)
{
    if (!imported.is_window || device_window_keys::instance().exports_with(imported.key.token)) {
        return {}; // a CPU finds a window of this process anyway
    }
    const auto copies =
        _device.part(&open_device::copies, [this](open_device&) { return staged_copies::create(_device.pd()); });
    if (!copies) {
        ucs_diag("messages that UCP copies by the CPU are refused for imported windows: %s",
                 copies.error().message.c_str());
        return {};
    }
    UCXL_TRY(imported_windows::instance().add(imported, *handle.alias, **copies, _device.windows()));
    handle.imported_address = imported.address;
    return {};
}

result<void> exchanged_memory::import(window_handle& handle, const exported_handle& imported)
{
    alias_table& aliases = _device.aliases();
    handle.alias         = UCXL_TRY(aliases.take(imported.key));
    rollback undo([&] { aliases.give_back(std::exchange(handle.alias, nullptr)); });
    handle.lkey = handle.rkey = handle.alias->key();
    UCXL_TRY(show_imported(handle, imported));
    undo.cancel();
    aliases.expect(imported);
    _device.show();
    return {};
}

void exchanged_memory::end_import(window_handle& handle) noexcept
{
    if (handle.alias == nullptr) {
        return;
    }
    if (handle.imported_address) {
        imported_windows::instance().remove(*handle.imported_address, *handle.alias);
    }
    _device.aliases().give_back(handle.alias);
}

} // namespace ucxl::mlx5
