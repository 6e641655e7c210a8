#include "region.h"

#include "sys/rollback.h"

#include <algorithm>
#include <array>
#include <format>
#include <unordered_set>
#include <utility>

namespace ucxl::mlx5
{

namespace
{

constexpr std::size_t nothing_bytes = 64;

void set_queue_pair(request_bytes& request, std::uint32_t qpn)
{
    const prm::view<prm::wqe_control_segment> control(std::span(request.bytes).first<prm::wqe_unit_bytes>());
    (void)control.set(prm::wqe_control_segment::qpn, qpn & 0xffffff);
}

// An overlay with atomics needs a key that is bound. Nobody knows this one yet, and in the end it is free again.
result<address_overlay> create_overlay(domain& domain, std::uint32_t key, const region_options& options)
{
    if (!options.rights.remote_atomic) {
        return address_overlay::create(domain.pd, key, options.address, options.rights, domain.caps.relaxed_only);
    }
    const std::lock_guard guard(domain.lock);
    const auto room = UCXL_TRY(domain.memory.take(nothing_bytes));
    const rollback done([&] { domain.memory.give_back(room); });
    const resolved_entry entry{
        .key = room.lkey, .address = reinterpret_cast<std::uintptr_t>(room.bytes.data()), .length = nothing_bytes};
    std::array<std::byte, nothing_bytes> encoded;
    UCXL_TRY(encode_entries(key_kind::klm, 0, std::span(&entry, 1), encoded));
    request_bytes request;
    encode_bind({.key = key, .rights = {.local_write = true}, .length = nothing_bytes, .start_address = {}},
                domain.queue.qpn(), domain.change_flags(), encoded, request);
    ++domain.num_binds;
    UCXL_TRY(domain.queue.execute(std::span(&request, 1)));
    auto overlay = address_overlay::create(domain.pd, key, options.address, options.rights, domain.caps.relaxed_only);
    encode_invalidate(key, domain.queue.qpn(), domain.change_flags(), request);
    ++domain.num_invalidations;
    UCXL_TRY(domain.queue.execute(std::span(&request, 1)));
    return overlay;
}

// The room of the root, and the depth that is left between an overlay and the regions below the layout.
result<device_limits> limits_above(unsigned below, const domain& domain, const region_options& options,
                                   bool has_overlay)
{
    device_limits limits      = domain.caps.limits;
    limits.max_root_octowords = options.max_entries;
    const unsigned taken      = below + (has_overlay ? 1 : 0);
    if (taken >= limits.max_nesting) {
        return fail(errc::exceeds_limit,
                    std::format("a region over one of depth {} is over the limit of {}{}", below, limits.max_nesting,
                                has_overlay ? ", one of them for its address" : ""));
    }
    limits.max_nesting -= taken;
    return limits;
}

} // namespace

result<std::unique_ptr<region>> region::create(domain& domain, const region_options& options)
{
    key_pool::key root;
    if (options.pool != nullptr) {
        const std::lock_guard guard(domain.lock);
        root = UCXL_TRY((domain.*options.pool).take(options.max_entries));
    } else {
        root.mkey   = UCXL_TRY(create_key(domain.pd, options.max_entries));
        root.number = root.mkey->lkey;
        root.room   = options.max_entries;
    }
    // An exported key keeps its number: aliases, which peers keep, ignore the variant.
    if (options.pool != &domain::exported) {
        const std::lock_guard guard(domain.lock);
        domain.variants.renumber(root);
    }
    std::optional<address_overlay> overlay;
    if (options.address != 0 && domain.found.address == address_method::ksm) {
        auto created = UCXL_TRY(create_overlay(domain, root.number, options));
        overlay      = std::move(created);
    }
    return std::unique_ptr<region>(new region(domain, options, std::move(root), std::move(overlay)));
}

// What leads to the nested keys ends before others get them.
region::~region()
{
    {
        const std::lock_guard guard(_domain.lock);
        _domain.bound.erase(key());
    }
    const bool root_is_spare = _options.pool != nullptr && !_is_bound;
    _overlay.reset();
    if (!root_is_spare) {
        _root.mkey.reset();
    }
    const std::lock_guard guard(_domain.lock);
    if (root_is_spare) {
        (_domain.*_options.pool).give_back(std::move(_root));
    } else if (_options.pool != nullptr) {
        _bound.keys.clear(); // the device did not invalidate the root, so it may not have ended it either
    }
    note_executed();
    release(_bound);
    release(_prepared);
}

void region::release(binding& unused) noexcept
{
    for (key_pool::key& key : unused.keys) {
        give_back(std::move(key));
    }
    give_back(unused.memory);
    unused = {};
}

void region::give_back(key_pool::key&& unused) noexcept
{
    if (!_has_posted) {
        _domain.keys.give_back(std::move(unused));
        return;
    }
    try {
        _own_keys.push_back(std::move(unused));
    } catch (const std::bad_alloc&) {
        // Then it ends, and leads nowhere.
    }
}

void region::give_back(const std::vector<staging::room>& unused) noexcept
{
    for (const staging::room& room : unused) {
        _domain.memory.give_back(room);
    }
}

result<key_pool::key> region::take_key(std::uint32_t entries)
{
    const auto fits = std::ranges::find_if(_own_keys, [&](const auto& each) { return each.room >= entries; });
    if (fits == _own_keys.end()) {
        return _domain.keys.take(entries);
    }
    key_pool::key taken = std::move(*fits);
    _own_keys.erase(fits);
    return taken;
}

void region::expect_posting()
{
    _posted_memory.reserve(max_posted_lists + 1);
    _has_posted = true;
}

void region::note_executed() noexcept
{
    _has_posted = false;
    for (key_pool::key& key : _own_keys) {
        give_back(std::move(key));
    }
    _own_keys.clear();
    for (const auto& memory : _posted_memory) {
        give_back(memory);
    }
    _posted_memory.clear();
}

// Nothing could follow a region over itself to its end. Layouts that are prepared count as those in force: they may be
// next. A region may lie over one that has no layout yet, so numbers are compared as well.
result<void> region::check_leads_elsewhere(std::span<const source_base> bases) const
{
    std::vector<const region*> unvisited;
    std::unordered_set<const region*> found;
    const auto leads_here = [&](const source_base& base) {
        const auto below = _domain.bound.find(base.lkey);
        if (below != _domain.bound.end() && found.insert(below->second).second) {
            unvisited.push_back(below->second);
        }
        return base.lkey == key();
    };
    bool is_circle = std::ranges::any_of(bases, leads_here);
    while (!is_circle && !unvisited.empty()) {
        const region& next = *unvisited.back();
        unvisited.pop_back();
        is_circle =
            std::ranges::any_of(next._bound.bases, leads_here) || std::ranges::any_of(next._prepared.bases, leads_here);
    }
    return is_circle ? fail(errc::invalid_param,
                            std::format("the memory below leads back to the region's key, 0x{:x}", key()))
                     : result<void>();
}

result<device_limits> region::limits_for(std::span<const source_base> bases) const
{
    UCXL_TRY(check_leads_elsewhere(bases));
    unsigned below = 0;
    for (const source_base& base : bases) {
        const auto found = _domain.bound.find(base.lkey);
        below            = std::max(below, found == _domain.bound.end() ? 0 : found->second->depth());
    }
    return limits_above(below, _domain, _options, _overlay.has_value());
}

result<lowered_layout> region::lower_ahead(const domain& domain, const region_options& options,
                                           const layout_ptr& layout)
{
    const bool has_overlay = domain.found.address == address_method::ksm;
    const auto limits      = UCXL_TRY(limits_above(0, domain, options, has_overlay));
    return lowered_layout{layout, limits, UCXL_TRY(lower(*layout, limits))};
}

result<void> region::check_end(std::uint64_t length) const
{
    const std::uint64_t most = _overlay ? _overlay->length() : ~_options.address;
    if (length > most) {
        return fail(errc::exceeds_limit, std::format("{} bytes from address 0x{:x} on are over the limit of {}", length,
                                                     _options.address, most));
    }
    return {};
}

// The rights of the first key govern access by peers. The keys below it are followed with local rights, on devices that
// do so (imaicl).
key_rights region::nested_rights() const
{
    return _domain.caps.nested_by_local_rights ? key_rights{.local_write = true} : _options.rights;
}

bind_request region::request_for_root(std::uint64_t length) const
{
    bind_request request{.key = _root.number, .rights = _options.rights, .length = length, .start_address = {}};
    if (_overlay) {
        request.rights = nested_rights(); // peers come through the overlay, which has the rights
    } else if (_options.address != 0) {
        request.start_address = _options.address;
    }
    return request;
}

result<void> region::add_key(const plan& all, std::size_t id, std::span<const source_base> bases, binding& to)
{
    const plan_key& wanted = all.keys[id];
    bind_request request   = request_for_root(wanted.length);
    if (id + 1 != all.keys.size()) {
        auto taken = UCXL_TRY(take_key(wanted.octowords));
        request    = {.key = taken.number, .rights = nested_rights(), .length = wanted.length, .start_address = {}};
        to.keys.push_back(std::move(taken));
    }
    std::vector<resolved_entry> entries;
    entries.reserve(wanted.num_entries);
    for (std::size_t i = 0; i < wanted.num_entries; ++i) {
        const plan_entry& entry = all.entries[wanted.first_entry + i];
        const auto offset       = static_cast<std::uint64_t>(entry.offset);
        if (entry.nested) {
            entries.push_back({to.keys[entry.target].number, offset, entry.length, entry.stride});
        } else {
            entries.push_back(
                {bases[entry.target].lkey, bases[entry.target].address + offset, entry.length, entry.stride});
        }
    }
    return add_request(request, wanted.kind, wanted.repeat_count, entries, to);
}

result<void> region::add_request(const bind_request& request, key_kind kind, std::uint32_t turns,
                                 std::span<const resolved_entry> entries, binding& to)
{
    const std::size_t size = entries_bytes(kind, entries.size());
    const bool in_request  = entries.size() <= max_inline_entries(kind, _domain.queue.max_request());
    request_bytes& bytes   = to.requests.emplace_back();
    std::vector<std::byte> copied;
    std::span<std::byte> place;
    if (in_request) {
        copied.resize(size);
        place = copied;
    } else {
        to.memory.reserve(to.memory.size() + 1);
        auto room = UCXL_TRY(_domain.memory.take(size));
        to.memory.push_back(room);
        place = room.bytes.first(size);
    }
    UCXL_TRY(encode_entries(kind, turns, entries, place));
    if (in_request) {
        encode_bind(request, 0, _domain.change_flags(), copied, bytes);
        return {};
    }
    const staging::room& room = to.memory.back();
    if (!encode_bind_by_pointer(request, 0, _domain.change_flags(), size, room.lkey,
                                reinterpret_cast<std::uintptr_t>(room.bytes.data()), bytes)) {
        return fail(errc::exceeds_limit,
                    std::format("{} bytes of entries are over what one bind request can hold", size));
    }
    return {};
}

result<void> region::prepare(const layout_ptr& layout, std::span<const source_base> bases, const lowered_layout* ahead)
{
    if (bases.size() < layout->num_sources()) {
        return fail(errc::invalid_param,
                    std::format("{} bases for a layout of {} sources", bases.size(), layout->num_sources()));
    }
    UCXL_TRY(check_end(layout->packed_length()));
    const std::lock_guard guard(_domain.lock);
    if (_domain.queue.has_failed()) {
        return device_has_failed();
    }
    const auto limits     = UCXL_TRY(limits_for(bases.first(layout->num_sources())));
    const bool is_lowered = ahead != nullptr && ahead->shape == layout && ahead->limits == limits;
    mlx5::plan now;
    if (!is_lowered) {
        now = UCXL_TRY(lower(*layout, limits));
    }
    const mlx5::plan& plan = is_lowered ? ahead->keys : now;
    binding next;
    next.shown  = layout;
    next.bases  = {bases.begin(), bases.begin() + layout->num_sources()};
    next.length = plan.root().length;
    next.cost   = plan.cost;
    next.cost.depth += _domain.caps.limits.max_nesting - limits.max_nesting;
    next.requests.reserve(plan.keys.size());
    next.keys.reserve(plan.keys.size());
    rollback undo([&] { release(next); });
    for (std::size_t id = 0; id < plan.keys.size(); ++id) {
        UCXL_TRY(add_key(plan, id, bases, next));
    }
    _domain.bound.emplace(key(), this); // here, because adopt() may not fail
    undo.cancel();
    release(_prepared);
    _prepared = std::move(next);
    return {};
}

void region::append_requests(std::uint32_t qpn, std::vector<request_bytes>& to) const
{
    for (const request_bytes& request : _prepared.requests) {
        set_queue_pair(to.emplace_back(request), qpn);
    }
}

void region::append_invalidation(std::uint32_t qpn, std::vector<request_bytes>& to) const
{
    encode_invalidate(_root.number, qpn, _domain.change_flags(), to.emplace_back());
}

void region::encode_resumption(std::uint32_t qpn, request_bytes& request) const
{
    request = _bound.requests.back();
    set_queue_pair(request, qpn);
}

void region::encode_suspension(std::uint32_t qpn, request_bytes& request) const
{
    encode_invalidate(_root.number, qpn, _domain.change_flags(), request);
}

void region::adopt() noexcept
{
    note_executed();
    replace_bound();
}

void region::adopt_posted() noexcept
{
    if (!_bound.memory.empty()) {
        _posted_memory.push_back(std::exchange(_bound.memory, {})); // has room
        if (_posted_memory.size() > max_posted_lists) {
            give_back(_posted_memory.front());
            _posted_memory.erase(_posted_memory.begin());
        }
    }
    replace_bound();
}

// The device has the requests, so nothing may fail here.
void region::replace_bound() noexcept
{
    release(_bound);
    _bound = std::move(_prepared);
    if (_options.pool != nullptr) {
        _bound.requests.erase(_bound.requests.begin(), _bound.requests.end() - 1);
    } else {
        _bound.requests.clear();
    }
    _is_bound = true;
    _prepared = {};
}

void region::forget(bool is_invalidated) noexcept
{
    if (!is_invalidated) {
        _bound.keys.clear();
        _prepared.keys.clear();
        _own_keys.clear();
    }
    note_executed();
    release(_bound);
    release(_prepared);
    _domain.bound.erase(key());
    _is_bound = !is_invalidated;
}

} // namespace ucxl::mlx5
