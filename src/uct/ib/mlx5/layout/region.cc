#include "region.h"

#include <algorithm>

namespace ucxl::mlx5
{

namespace
{

void set_queue_pair(request_bytes& request, std::uint32_t qpn)
{
    const prm::view<prm::wqe_control_segment> control(std::span(request.bytes).first<prm::wqe_unit_bytes>());
    (void)control.set(prm::wqe_control_segment::qpn, qpn & 0xffffff);
}

ucs_status_t status_of(refusal::reason why)
{
    return why == refusal::reason::empty ? UCS_ERR_INVALID_PARAM : UCS_ERR_EXCEEDS_LIMIT;
}

} // namespace

outcome<std::unique_ptr<region>> region::create(domain& in, const region_options& options)
{
    auto root = create_key(in.pd, options.max_entries);
    if (!root) {
        return std::unexpected(std::move(root.error()));
    }
    return std::unique_ptr<region>(new region(in, options, std::move(*root)));
}

region::~region()
{
    const std::lock_guard guard(_domain.lock);
    release(_bound);
    release(_prepared);
    _domain.depth_of_key.erase(key());
}

void region::release(binding& unused)
{
    for (key_pool::key& key : unused.keys) {
        _domain.keys.give_back(std::move(key));
    }
    for (const staging::room& room : unused.memory) {
        _domain.memory.give_back(room);
    }
    unused = {};
}

// What the root has room for, and what depth is left above regions that the layout is over.
outcome<device_limits> region::limits_for(std::span<const source_base> bases) const
{
    device_limits limits      = _domain.caps.limits;
    limits.max_list_entries   = std::min(limits.max_list_entries, _options.max_entries);
    limits.max_repeat_entries = std::min(limits.max_repeat_entries, _options.max_entries - 1);
    unsigned below            = 0;
    for (const source_base& base : bases) {
        const auto found = _domain.depth_of_key.find(base.lkey);
        below            = std::max(below, found == _domain.depth_of_key.end() ? 0 : found->second);
    }
    if (below >= limits.max_nesting) {
        return failed(UCS_ERR_EXCEEDS_LIMIT,
                      std::format("a region over one of depth {} is over the limit of {}", below, limits.max_nesting));
    }
    limits.max_nesting -= below;
    return limits;
}

outcome<void> region::add_key(const plan& all, std::size_t id, std::span<const source_base> bases, binding& to)
{
    const plan_key& wanted = all.keys[id];
    const bool is_root     = id + 1 == all.keys.size();
    bind_request request{.key = key(), .rights = _options.rights, .length = wanted.length, .start_address = {}};
    if (is_root) {
        request.start_address = _options.address != 0 ? std::optional(_options.address) : std::nullopt;
    } else {
        auto taken = _domain.keys.take(wanted.octowords);
        if (!taken) {
            return std::unexpected(std::move(taken.error()));
        }
        // Peers reach the memory through the root's rights; a nested key is followed with local ones.
        request.key    = taken->mkey->lkey;
        request.rights = {.local_write = true};
        to.keys.push_back(std::move(*taken));
    }
    std::vector<resolved_entry> entries;
    entries.reserve(wanted.num_entries);
    for (std::size_t i = 0; i < wanted.num_entries; ++i) {
        const plan_entry& entry = all.entries[wanted.first_entry + i];
        const auto offset       = static_cast<std::uint64_t>(entry.offset);
        if (entry.nested) {
            entries.push_back({to.keys[entry.target].mkey->lkey, offset, entry.length, entry.stride});
        } else {
            entries.push_back(
                {bases[entry.target].lkey, bases[entry.target].address + offset, entry.length, entry.stride});
        }
    }
    const std::size_t size = entries_bytes(wanted.kind, entries.size());
    const bool in_request  = entries.size() <= max_inline_entries(wanted.kind, _domain.queue.max_request());
    request_bytes& bytes   = to.requests.emplace_back();
    std::vector<std::byte> copied;
    std::span<std::byte> place;
    if (in_request) {
        copied.resize(size);
        place = copied;
    } else {
        auto room = _domain.memory.take(size);
        if (!room) {
            return std::unexpected(std::move(room.error()));
        }
        to.memory.push_back(*room);
        place = room->bytes.first(size);
    }
    if (auto encoded = encode_entries(wanted.kind, wanted.repeat_count, entries, place); !encoded) {
        return failed(UCS_ERR_EXCEEDS_LIMIT, std::move(encoded.error()));
    }
    if (in_request) {
        encode_bind(request, 0, {}, copied, bytes);
        return {};
    }
    const staging::room& room = to.memory.back();
    if (!encode_bind_by_pointer(request, 0, {}, size, room.lkey, reinterpret_cast<std::uintptr_t>(room.bytes.data()),
                                bytes)) {
        return failed(UCS_ERR_EXCEEDS_LIMIT,
                      std::format("{} bytes of entries are over what one bind request can hold", size));
    }
    return {};
}

outcome<void> region::prepare(const layout& of, std::span<const source_base> bases)
{
    if (bases.size() < of.num_sources()) {
        return failed(UCS_ERR_INVALID_PARAM,
                      std::format("{} bases for a layout of {} sources", bases.size(), of.num_sources()));
    }
    const std::lock_guard guard(_domain.lock);
    const auto limits = limits_for(bases.first(of.num_sources()));
    if (!limits) {
        return std::unexpected(limits.error());
    }
    const auto made = lower(of, *limits);
    if (!made) {
        return failed(status_of(made.error().why), made.error().message);
    }
    binding next;
    next.length = made->root().length;
    next.cost   = made->cost;
    next.cost.depth += _domain.caps.limits.max_nesting - limits->max_nesting;
    next.requests.reserve(made->keys.size());
    next.keys.reserve(made->keys.size());
    for (std::size_t id = 0; id < made->keys.size(); ++id) {
        if (auto added = add_key(*made, id, bases, next); !added) {
            release(next);
            return added;
        }
    }
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
    encode_invalidate(key(), qpn, {}, to.emplace_back());
}

void region::adopt()
{
    release(_bound);
    _bound = std::move(_prepared);
    _bound.requests.clear();
    _prepared                   = {};
    _domain.depth_of_key[key()] = _bound.cost.depth;
}

void region::forget()
{
    release(_bound);
    release(_prepared);
    _domain.depth_of_key.erase(key());
}

outcome<void> bind_all(std::span<region* const> regions, bool replace)
{
    domain& shared = regions.front()->owner();
    const std::lock_guard guard(shared.lock);
    std::vector<request_bytes> requests;
    for (region* const one : regions) {
        if (replace && one->length() != 0) {
            one->append_invalidation(shared.queue.qpn(), requests);
        }
        one->append_requests(shared.queue.qpn(), requests);
    }
    outcome<void> done = shared.queue.execute(requests);
    for (region* const one : regions) {
        done ? one->adopt() : one->forget();
    }
    return done;
}

outcome<void> invalidate_all(std::span<region* const> regions)
{
    domain& shared = regions.front()->owner();
    const std::lock_guard guard(shared.lock);
    std::vector<request_bytes> requests;
    for (region* const one : regions) {
        one->append_invalidation(shared.queue.qpn(), requests);
    }
    const outcome<void> done = shared.queue.execute(requests);
    for (region* const one : regions) {
        one->forget();
    }
    return done;
}

outcome<void> post_all(ibv_qp* qp, std::span<region* const> regions, std::uint64_t wr_id, bool signaled)
{
    domain& shared = regions.front()->owner();
    std::vector<request_bytes> requests;
    for (region* const one : regions) {
        one->append_requests(qp->qp_num, requests);
    }
    encode_key_fence(qp->qp_num, {.signaled = signaled}, requests.emplace_back());
    if (auto posted = post_raw(qp, requests, wr_id); !posted) {
        return posted;
    }
    const std::lock_guard guard(shared.lock);
    for (region* const one : regions) {
        one->adopt();
    }
    return {};
}

} // namespace ucxl::mlx5
