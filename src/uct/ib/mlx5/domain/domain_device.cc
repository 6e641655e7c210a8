#include "domain_device.h"

#include "abi/log.h"
#include "domain_options.h"
#include "uct/ib/mlx5/layout/device_report.h"

#include <utility>

namespace ucxl::mlx5
{

domain_device::domain_device(ibv_pd* pd, std::string name, const window_directory& windows)
    : _pd(pd), _name(std::move(name)), _windows(windows), _shown(windows.show_domain(_name)),
      _aliases(pd, read_key_options().aliases)
{
}

result<std::unique_ptr<open_device>> domain_device::open() const
{
    auto parts      = UCXL_TRY(domain::open(_pd, domain::default_port, domain::default_depth));
    auto registered = UCXL_TRY(base_memory::create(_pd));
    auto opened     = std::make_unique<open_device>(_pd, std::move(parts), std::move(registered));
    stock_keys(opened->keys);
    return opened;
}

result<open_device*> domain_device::open_locked()
{
    const bool was_open = _device.existing() != nullptr;
    auto device         = _device.get([this] { return open(); });
    if (!device) {
        const std::string& reason = device.error().message;
        if (!std::exchange(_was_unusable, true)) {
            ucs_diag("%s: windows get no hardware keys: %s", name(), reason.c_str());
        }
        _shown->show_unusable(reason);
        return fail(errc::no_device, _name + ": " + reason);
    }
    if (!was_open) {
        if (_was_unusable) {
            _shown->show_unusable("");
        }
        _shown->show_choices(choices((*device)->keys));
        show_locked();
    }
    return device;
}

result<open_device*> domain_device::get()
{
    const std::lock_guard guard(_lock);
    return open_locked();
}

// It stays until the domain closes, so it needs the lock no longer than it takes to find it.
card_memory* domain_device::existing_card() const
{
    const std::lock_guard guard(_lock);
    const open_device* const device = _device.existing();
    return device != nullptr ? device->card.existing() : nullptr;
}

void domain_device::show() const
{
    const std::lock_guard guard(_lock);
    show_locked();
}

void domain_device::change(const key_counts& before, const key_counts& after)
{
    const std::lock_guard guard(_lock);
    for (const auto count :
         {&key_counts::live, &key_counts::suspended, &key_counts::entries, &key_counts::exported_windows}) {
        _counts.*count += after.*count - before.*count;
    }
    show_locked();
}

domain_figures domain_device::figures() const
{
    domain_figures figures;
    figures.keys_live               = _counts.live;
    figures.keys_suspended          = _counts.suspended;
    figures.entries                 = _counts.entries;
    figures.aliases                 = _aliases.size();
    const open_device* const device = _device.existing();
    if (device == nullptr) {
        return figures;
    }
    if (const card_memory* const card = device->card.existing()) {
        const auto memory    = card->statistics();
        figures.memic_chunks = memory.chunks;
        figures.memic_bytes  = memory.bytes;
        figures.memic_free   = memory.free_bytes;
    }
    const exported_keys* const exports = device->exports.existing();
    figures.bases_registered           = device->memory->bytes();
    figures.keys_spare                 = device->keys.keys.num_unused() + device->keys.roots.num_unused();
    figures.exported                   = _counts.exported_windows + (exports != nullptr ? exports->num_buffers() : 0);
    figures.exported_spare             = device->keys.exported.num_unused();
    figures.binds                      = device->keys.num_binds.load(std::memory_order_relaxed);
    figures.invalidations              = device->keys.num_invalidations.load(std::memory_order_relaxed);
    return figures;
}

} // namespace ucxl::mlx5
