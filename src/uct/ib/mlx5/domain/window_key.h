// The hardware key of one window in one domain: a region at the window's address over registrations of its memory.
//
// While nobody uses the window its key is suspended: the device refuses it, and its registrations are given back to
// their cache. Resumption asks for them again; if the memory was unmapped in between, the key is made anew.
//
// Not thread safe; the owner guards it.
#pragma once

#include "base_memory.h"
#include "memory_pieces.h"
#include "ucs/window/window_keys.h"
#include "uct/ib/mlx5/layout/bind.h"
#include "uct/ib/mlx5/layout/region.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace ucxl::mlx5
{

class window_key
{
public:
    // The registrations below a window.
    struct shown_memory {
        std::vector<source_base> bases;
        std::vector<base_memory::held> held;
        layout_ptr shape;
        memory_pieces pieces;
    };

    // A key that is not made yet.
    struct planned {
        shown_memory shown;
        lowered_layout lowered; // of no shape where it has to be done again
    };

    // Registers memory, which may take long. Any thread. Errors: the reason why the window should be copied.
    static result<planned> plan(const domain& domain, base_memory& memory, const window_content& content,
                                key_choice choice);
    static result<shown_memory> hold(base_memory& memory, const layout_ptr& shape, std::span<std::byte* const> bases);
    // The content was planned, or has a key in this domain already.
    static result<std::unique_ptr<window_key>> create(domain& domain, base_memory& memory,
                                                      const window_content& content, planned&& planned,
                                                      bool is_exported = false);
    ~window_key();
    window_key(const window_key&)            = delete;
    window_key& operator=(const window_key&) = delete;

    std::uint32_t key() const { return _region->key(); }
    const region& shown_by() const { return *_region; } // not after a failed suspension
    const plan_cost& cost() const { return _region->cost(); }
    const window_content& content() const { return _content; }
    // Whether some of its bytes are in memory of the card.
    bool shows_card_memory() const
    {
        return std::ranges::any_of(_bound.held, [](const base_memory::held& held) { return held.is_card_memory(); });
    }
    bool is_suspended() const { return _is_suspended; }
    // Its key was destroyed, because the device may still follow it. It shows nothing ever again.
    bool is_lost() const { return _region == nullptr; }

    // Peers and local users are refused from now on. A key that cannot be invalidated is destroyed.
    void suspend() noexcept;
    // Errors: the key stays suspended, or is lost if the device may still follow it.
    result<void> resume();
    // Errors: the key shows the bases as before, or is suspended or lost if the device failed.
    result<void> rebind(std::vector<std::byte*> bases, shown_memory&& shown);
    result<void> rebind(std::vector<std::byte*> bases);

private:
    window_key(base_memory& memory, const window_content& content) : _memory(memory), _content(content) {}

    static result<shown_memory> hold_pieces(base_memory& memory, const memory_pieces& pieces);
    // Errors: the key was destroyed.
    result<void> check_region() const;
    result<void> bind(bool replace);
    // After a failure that left the key suspended: the next resumption binds it anew. A key that the device may still
    // follow is destroyed.
    void end_bound() noexcept;
    // Shows what _bound holds, whatever the region showed before. Errors: the key is suspended.
    result<void> show_bound(const lowered_layout* ahead = nullptr);

    base_memory& _memory;
    window_content _content;
    shown_memory _bound; // outlives the region
    std::unique_ptr<region> _region;
    bool _is_suspended = true;
};

} // namespace ucxl::mlx5
