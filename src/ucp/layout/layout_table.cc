#include "layout_table.h"

#include "sys/fork.h"

#include <utility>

namespace ucxl
{

// Never destroyed: destructors that run later may release layouts.
layout_table& layout_table::instance()
{
    static layout_table& table = *[] {
        auto* created = new layout_table;
        hold_over_fork<[]() -> std::mutex& { return instance()._lock; }>();
        return created;
    }();
    return table;
}

// A layout of the same hash, if there is one. It is all but certainly the same content.
handle_ptr layout_table::find_by_hash(const layout& wanted)
{
    const std::lock_guard guard(_lock);
    const auto found = _living.lower_bound(wanted.hash());
    return found == _living.end() || found->first->hash() != wanted.hash() ? nullptr : retain(found->second.get());
}

handle_ptr layout_table::share(layout_ptr made)
{
    // Comparing takes long for long layouts, so the lock is not held meanwhile.
    if (auto similar = find_by_hash(*made); similar != nullptr && *similar->value == *made) {
        return similar;
    }
    auto owned = std::make_unique<ucp_layout>(std::move(made));
    const std::lock_guard guard(_lock);
    const auto [place, is_new] = _living.try_emplace(owned->value.get(), std::move(owned));
    if (!is_new) {
        return retain(place->second.get());
    }
    place->second->_place = place;
    return handle_ptr(place->second.get());
}

void layout_table::release(ucp_layout& handle) noexcept
{
    layouts_by_content::node_type ended; // outlives the lock
    const std::lock_guard guard(_lock);
    if (handle._references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        ended = _living.extract(handle._place);
    }
}

pack_plan_ptr layout_table::set_plan(ucp_layout& handle, pack_plan_ptr compiled)
{
    const std::lock_guard guard(_lock);
    if (handle._plan == nullptr) {
        handle._plan = std::move(compiled);
        handle._compiled.store(handle._plan.get(), std::memory_order_release);
    }
    return handle._plan;
}

} // namespace ucxl
