// The device of one domain as its windows use it. It is opened with the first window, and each part is made when it is
// first needed, so a process without windows costs the device nothing. What was made stays until the domain closes.
//
// Example:
//     auto* const device = UCXL_TRY(_device.get());
//     auto* const copies = UCXL_TRY(_device.part(&open_device::copies, [&](open_device&) { ... }));
//
// Thread safety: everything. The device is opened, its parts are made, and its figures are shown under one lock.
#pragma once

#include "alias_table.h"
#include "base_memory.h"
#include "card_memory.h"
#include "exported_keys.h"
#include "late_part.h"
#include "staged_copies.h"
#include "ucs/window/window_keys.h"
#include "uct/ib/mlx5/layout/domain.h"

#include <memory>
#include <mutex>
#include <string>

namespace ucxl::mlx5
{

struct open_device {
    open_device(ibv_pd* pd, domain_parts&& parts, std::unique_ptr<base_memory> registered)
        : keys(pd, std::move(parts)), memory(std::move(registered))
    {
    }

    domain keys;
    std::unique_ptr<base_memory> memory;
    late_part<card_memory> card;      // made with the first allocation
    late_part<staged_copies> copies;  // made with the first imported window
    late_part<exported_keys> exports; // made with the first export
};

// Of the keys of all handles and records of a domain.
struct key_counts {
    std::uint64_t live             = 0;
    std::uint64_t suspended        = 0;
    std::uint64_t entries          = 0; // of the live ones
    std::uint64_t exported_windows = 0;
};

class domain_device
{
public:
    domain_device(ibv_pd* pd, std::string name, const window_directory& windows);
    domain_device(const domain_device&)            = delete;
    domain_device& operator=(const domain_device&) = delete;

    ibv_pd* pd() const { return _pd; }
    const char* name() const { return _name.c_str(); }
    const window_directory& windows() const { return _windows; }
    alias_table& aliases() { return _aliases; }

    // Errors: no_device.
    result<open_device*> get();
    // A part, which make(device) returns if it is not there yet. Errors: no_device, those of make().
    template <typename Part, typename Make>
    result<Part*> part(late_part<Part> open_device::* which, Make&& make)
    {
        const std::lock_guard guard(_lock);
        open_device& device = *UCXL_TRY(open_locked());
        auto found          = (device.*which).get([&] { return make(device); });
        if (!found) {
            return fail(found.error().code, _name + ": " + found.error().message);
        }
        return found;
    }
    // Null while there is none.
    card_memory* existing_card() const;

    // Shows the figures, which have changed.
    void show() const;
    // The keys that were counted as `before` are now `after`.
    void change(const key_counts& before, const key_counts& after);

private:
    result<std::unique_ptr<open_device>> open() const;
    // The caller holds the lock, also of what follows.
    result<open_device*> open_locked();
    domain_figures figures() const;
    void show_locked() const { _shown->show_figures(figures()); }

    ibv_pd* const _pd;
    const std::string _name;
    const window_directory& _windows;
    const std::unique_ptr<shown_domain> _shown;
    alias_table _aliases; // has its own lock

    mutable std::mutex _lock; // guards what follows
    late_part<open_device> _device;
    bool _was_unusable = false; // the device could not be opened, at first
    key_counts _counts;
};

} // namespace ucxl::mlx5
