#include "window_cache.h"

#include "abi/log.h"
#include "abi/registrations.h"
#include "hardware_keys.h"
#include "sys/hash.h"
#include "sys/rollback.h"
#include "uct/layout/peer/export.h"
#include "window_figures.h"

#include <algorithm>
#include <cstring>
#include <ranges>

namespace ucxl
{

namespace
{

template <typename Pointer>
std::uint64_t content_key(const ucp_layout& layout, std::span<const Pointer> bases)
{
    // No value needs the one before: the processor mixes several at a time.
    std::uint64_t key   = mix(reinterpret_cast<std::uintptr_t>(&layout));
    std::uint64_t place = 0;
    for (const auto base : bases) {
        place += 0x9e3779b97f4a7c15; // as in splitmix64, so that the order matters
        key += mix(place + reinterpret_cast<std::uintptr_t>(base));
    }
    return key;
}

std::uint64_t content_key(const cached_window& cached)
{
    return content_key(*cached.layout, std::span<std::byte* const>(cached.target->binding().bases));
}

// Whether all bytes are in regions.
bool is_over_regions(const layout& layout, std::span<void* const> bases)
{
    return layout.packed_length() > 0 && !region_table::instance().is_empty() &&
           !regions_of(layout, to_bytes(bases)).empty();
}

} // namespace

std::vector<std::byte*> to_bytes(std::span<void* const> bases)
{
    std::vector<std::byte*> bytes(bases.size());
    std::ranges::transform(bases, bytes.begin(), [](void* base) { return static_cast<std::byte*>(base); });
    return bytes;
}

window_cache::~window_cache()
{
    for (const auto& window : _windows | std::views::values) {
        window_registry::instance().destroy(window->target);
    }
}

// Returns false if its hardware keys cannot be had again, such as when its memory was unmapped.
bool window_cache::wake(cached_window& cached)
{
    if (window_keys* const keys = hardware_keys()) {
        if (const auto resumed = keys->resume(cached.target->address()); !resumed) {
            ucs_debug("a window of %zu bytes cannot be used again: %s", cached.target->length(),
                      resumed.error().message.c_str());
            return false;
        }
    }
    _idle.erase(cached.idle_position);
    window_registry::instance().publish(*cached.target);
    return true;
}

cached_window* window_cache::reuse(ucp_layout& layout, std::span<void* const> bases, bool exclusive, std::uint64_t view)
{
    cached_window* const found = find(layout, bases, exclusive);
    if (found == nullptr) {
        return nullptr;
    }
    const bool was_refused = !found->why_copied.empty() && found->view != view;
    if (found->users == 0 && (was_refused || is_over_regions(*layout.value, bases) || !wake(*found))) {
        _idle.erase(found->idle_position);
        destroy(found);
        return nullptr;
    }
    if (exclusive) {
        remove_from_index(*found);
    }
    found->exclusive = exclusive;
    ++found->users;
    return found;
}

result<cached_window*> window_cache::create(ucp_layout& layout, decision decided, bool exclusive)
{
    auto owned             = std::make_unique<cached_window>();
    cached_window* created = owned.get();
    const auto place       = _windows.emplace(created, std::move(owned)).first;
    rollback undo([&] { _windows.erase(place); });
    created->target = UCXL_TRY(ucxl::create(decided));
    undo.cancel();
    rollback undo_all([&] { destroy(created); });
    created->layout     = retain(&layout);
    created->exclusive  = exclusive;
    created->why_copied = std::move(decided.why_copied);
    created->view       = decided.view;
    created->is_kept    = !decided.may_change;
    if (!exclusive && !created->has_own_memory()) {
        index(*created);
    }
    undo_all.cancel();
    created->users = 1;
    return created;
}

void window_cache::release(cached_window* cached)
{
    if (--cached->users > 0) {
        return;
    }
    window_figures::instance().remove(*cached);
    if (cached->has_own_memory() || cached->target->binding().is_shared() || !cached->is_kept || _max_idle == 0) {
        destroy(cached);
        return;
    }
    // The application may free or reuse the memory from now on, while peers still hold the address and the keys.
    withdraw_exported_window(cached->target->address());
    window_registry::instance().unpublish(*cached->target);
    if (window_keys* const keys = hardware_keys()) {
        keys->suspend(cached->target->address());
    }
    try {
        if (cached->exclusive) {
            index(*cached);
            cached->exclusive = false;
        }
        cached->idle_position = _idle.insert(_idle.end(), cached);
    } catch (const std::bad_alloc&) {
        destroy(cached); // out of memory; keeping it was only an optimisation
        return;
    }
    if (_idle.size() > _max_idle) {
        cached_window* oldest = _idle.front();
        _idle.pop_front();
        destroy(oldest);
    }
}

result<void> window_cache::rebind(cached_window& cached, std::span<void* const> bases)
{
    window_binding binding{cached.target->binding().plan, to_bytes(bases)};
    const window_content before = content_of(*cached.target);
    window_content after        = before;
    after.bases                 = binding.bases;
    window_keys* const keys     = hardware_keys();
    if (keys != nullptr) {
        if (auto done = keys->rebind(before, after); !done) {
            // The keys may be gone, so UCP has to ask for them again.
            abi::retire_registrations(cached.target->address(), cached.target->length());
            return done;
        }
    }
    content_index::node_type indexed; // reused, so nothing can fail once the window is bound
    if (!cached.exclusive) {
        indexed = _by_content.extract(position(cached));
    }
    auto bound = window_registry::instance().rebind(*cached.target, std::move(binding));
    if (!cached.exclusive) {
        indexed.key() = content_key(cached); // still the old content if rebinding failed
        _by_content.insert(std::move(indexed));
    }
    if (bound) {
        update_exported_window(cached.target->address());
    } else if (keys != nullptr) {
        if (const auto restored = keys->rebind(after, before); !restored) {
            keys->remove(before.address); // rather no key than one over the wrong memory
        }
    }
    return bound;
}

cached_window* window_cache::find(const ucp_layout& layout, std::span<void* const> bases, bool unused) const
{
    cached_window* found     = nullptr;
    const auto [first, last] = _by_content.equal_range(content_key(layout, bases));
    for (auto entry = first; entry != last; ++entry) {
        const cached_window& candidate = *entry->second;
        const bool is_used             = candidate.users != 0;
        if ((is_used && unused) || candidate.layout.get() != &layout ||
            !std::ranges::equal(candidate.target->binding().bases, bases)) {
            continue;
        }
        // One that was exclusive may lie unused beside the one that is in use, whose address the others have.
        if (is_used || unused) {
            return entry->second;
        }
        found = found == nullptr ? entry->second : found;
    }
    return found;
}

void window_cache::index(cached_window& cached)
{
    _by_content.emplace(content_key(cached), &cached);
}

window_cache::content_index::const_iterator window_cache::position(const cached_window& cached) const
{
    const auto [first, last] = _by_content.equal_range(content_key(cached));
    const auto entry         = std::find_if(first, last, [&](const auto& pair) { return pair.second == &cached; });
    return entry == last ? _by_content.end() : entry;
}

void window_cache::remove_from_index(const cached_window& cached)
{
    if (const auto indexed = position(cached); indexed != _by_content.end()) {
        _by_content.erase(indexed);
    }
}

void window_cache::destroy(cached_window* cached)
{
    _ends(*cached);
    remove_from_index(*cached);
    window_registry::instance().unpublish(*cached->target); // so that nobody asks for a key again
    if (window_keys* const keys = hardware_keys()) {
        keys->remove(cached->target->address());
    }
    window_registry::instance().destroy(cached->target);
    _windows.erase(cached);
}

} // namespace ucxl
