#include "window_cache.h"

#include "sys/hash.h"
#include "sys/rollback.h"
#include "uct/layout/peer/export.h"

#include <algorithm>
#include <cstring>
#include <ranges>

namespace ucxl
{

namespace
{

template <typename Pointer>
std::uint64_t content_key(const layout& of, std::span<const Pointer> bases)
{
    std::uint64_t key = of.hash();
    for (const auto base : bases) {
        key = mix(key ^ reinterpret_cast<std::uintptr_t>(base));
    }
    return key;
}

std::uint64_t content_key(const cached_window& of)
{
    return content_key(*of.layout->value, std::span<std::byte* const>(of.view->binding().bases));
}

std::vector<std::byte*> to_bytes(std::span<void* const> bases)
{
    std::vector<std::byte*> bytes(bases.size());
    std::ranges::transform(bases, bytes.begin(), [](void* base) { return static_cast<std::byte*>(base); });
    return bytes;
}

} // namespace

window_cache::~window_cache()
{
    for (const auto& window : _windows | std::views::values) {
        window_registry::instance().destroy(window->view);
    }
}

template <typename MakeView>
result<cached_window*> window_cache::create(ucp_layout& layout, MakeView&& make_view)
{
    auto plan        = UCXL_TRY(layout.plan());
    auto owned       = std::make_unique<cached_window>();
    auto* made       = owned.get();
    const auto place = _windows.emplace(made, std::move(owned)).first;
    rollback undo([&] { _windows.erase(place); });
    made->view = UCXL_TRY(make_view(std::move(plan)));
    undo.cancel();
    made->layout = retain(&layout);
    return made;
}

result<cached_window*> window_cache::create_indexed(ucp_layout& layout, std::span<void* const> bases, bool exclusive)
{
    auto made = create(layout, [&](pack_plan_ptr plan) {
        return window_registry::instance().create({std::move(plan), to_bytes(bases)});
    });
    if (made && !exclusive) {
        rollback undo([&] { destroy(*made); });
        index(**made);
        undo.cancel();
    }
    return made;
}

result<cached_window*> window_cache::acquire(ucp_layout& layout, std::span<void* const> bases, bool exclusive)
{
    cached_window* found = find(*layout.value, bases, exclusive);
    if (found == nullptr) {
        auto made = create_indexed(layout, bases, exclusive);
        if (!made) {
            return made;
        }
        found = *made;
    } else {
        if (found->users == 0) {
            _idle.erase(found->idle_position);
            window_registry::instance().publish(*found->view);
        }
        if (exclusive) {
            remove_from_index(*found);
        }
    }
    found->exclusive = exclusive;
    ++found->users;
    return found;
}

result<cached_window*> window_cache::allocate(ucp_layout& layout)
{
    auto made =
        create(layout, [](pack_plan_ptr plan) { return window_registry::instance().allocate(std::move(plan)); });
    if (made) {
        (*made)->users = 1;
    }
    return made;
}

void window_cache::release(cached_window* what)
{
    if (--what->users > 0) {
        return;
    }
    if (what->has_own_memory() || _max_idle == 0) {
        destroy(what);
        return;
    }
    // Its memory may be freed or used again from now on, and peers go on with the address and the keys they have.
    withdraw_exported_window(what->view->address());
    window_registry::instance().unpublish(*what->view);
    try {
        if (what->exclusive) {
            index(*what);
            what->exclusive = false;
        }
        what->idle_position = _idle.insert(_idle.end(), what);
    } catch (const std::bad_alloc&) {
        destroy(what); // keeping it was an optimisation
        return;
    }
    if (_idle.size() > _max_idle) {
        cached_window* oldest = _idle.front();
        _idle.pop_front();
        destroy(oldest);
    }
}

result<void> window_cache::rebind(cached_window& what, std::span<void* const> bases)
{
    window_binding binding{what.view->binding().plan, to_bytes(bases)};
    content_index::node_type indexed; // is reused: nothing can fail once the window is bound
    if (!what.exclusive) {
        indexed = _by_content.extract(position(what));
    }
    auto bound = window_registry::instance().rebind(*what.view, std::move(binding));
    if (!what.exclusive) {
        indexed.key() = content_key(what); // the old content if rebinding failed
        _by_content.insert(std::move(indexed));
    }
    if (bound) {
        update_exported_window(what.view->address());
    }
    return bound;
}

cached_window* window_cache::find(const layout& of, std::span<void* const> bases, bool unused) const
{
    const auto [first, last] = _by_content.equal_range(content_key(of, bases));
    for (auto it = first; it != last; ++it) {
        const cached_window& candidate = *it->second;
        if ((!unused || candidate.users == 0) && std::ranges::equal(candidate.view->binding().bases, bases) &&
            *candidate.layout->value == of) {
            return it->second;
        }
    }
    return nullptr;
}

void window_cache::index(cached_window& what)
{
    _by_content.emplace(content_key(what), &what);
}

window_cache::content_index::const_iterator window_cache::position(const cached_window& what) const
{
    const auto [first, last] = _by_content.equal_range(content_key(what));
    const auto it            = std::find_if(first, last, [&](const auto& pair) { return pair.second == &what; });
    return it == last ? _by_content.end() : it;
}

void window_cache::remove_from_index(const cached_window& what)
{
    if (const auto indexed = position(what); indexed != _by_content.end()) {
        _by_content.erase(indexed);
    }
}

void window_cache::destroy(cached_window* what)
{
    remove_from_index(*what);
    window_registry::instance().destroy(what->view);
    _windows.erase(what);
}

} // namespace ucxl
