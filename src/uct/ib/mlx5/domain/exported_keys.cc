#include "exported_keys.h"

#include "abi/log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint32_t buffer_octowords      = 4;                      // the least that a list has
constexpr std::uint32_t long_buffer_octowords = window_key_octowords;   // so that there are only two sizes
constexpr std::uint64_t entry_bytes           = std::uint64_t{1} << 31; // a buffer beyond has more entries
constexpr std::size_t klm_bytes               = 16;
constexpr std::size_t most_announced          = 256; // that wait for a handle

std::size_t num_entries(std::uint64_t length)
{
    return std::max<std::uint64_t>((length + entry_bytes - 1) / entry_bytes, 1);
}

std::uint32_t octowords_for(std::uint64_t length)
{
    const std::size_t needed = num_entries(length);
    return needed <= buffer_octowords ? buffer_octowords : long_buffer_octowords;
}

std::chrono::steady_clock::duration duration_of(double seconds)
{
    constexpr double longest = 1e9;
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(std::min(seconds, longest)));
}

} // namespace

result<std::unique_ptr<exported_keys>> exported_keys::create(domain& keys, const export_options& options)
{
    if (keys.found.address != address_method::umr) {
        return fail(errc::unsupported, "the address of a key that others may use cannot be chosen by its bind request");
    }
    std::unique_ptr<exported_keys> created(new exported_keys(keys, options));
    UCXL_TRY(created->start());
    return created;
}

result<void> exported_keys::start()
{
    _token         = UCXL_TRY(random_token());
    key_pool& pool = _domain.exported;
    pool.keep(std::numeric_limits<std::size_t>::max()); // until they are idle
    pool.limit(_options.max);
    pool.rest(_options.spare); // aliases of a key lead to whatever it shows, so its old users must have ended
    pool.prepare_keys(
        [this](const mlx5dv_mkey& fresh) { return allow_access(_domain.pd->context, fresh.lkey, _token); });
    auto first = UCXL_TRY(pool.create(buffer_octowords)); // tells whether the device allows it
    _unused_nodes.reserve(most_unused_nodes);
    _sizes.push_back(buffer_octowords);
    {
        const std::lock_guard guard(_domain.lock);
        pool.add(std::move(first));
    }
    _filler = std::jthread([this](const std::stop_token& stop) { run_filler(stop); });
    return {};
}

exported_keys::~exported_keys()
{
    _filler = {};
    const std::lock_guard guard(_domain.lock);
    for (auto& [memh, key] : _buffers) {
        take_back(std::move(key));
    }
    _domain.exported.clear(); // they were opened with this token
    _domain.exported.prepare_keys({});
}

// Keys are made without the lock, one after the other, so that others wait for none.
void exported_keys::fill()
{
    for (;;) {
        std::uint32_t wanted = 0;
        {
            const std::lock_guard guard(_domain.lock);
            const auto is_short = [&](std::uint32_t size) { return _domain.exported.num_ready(size) < _options.spare; };
            const auto found    = std::ranges::find_if(_sizes, is_short);
            if (found == _sizes.end()) {
                return;
            }
            wanted = *found;
        }
        auto key = _domain.exported.create(wanted);
        if (!key) {
            ucs_debug("spare keys for export: %s", key.error().message.c_str());
            return;
        }
        const std::lock_guard guard(_domain.lock);
        if (_announced.size() < most_announced) {
            _announced.push_back({.key = key->number, .created = key->created});
        }
        _domain.exported.add(std::move(*key));
    }
}

void exported_keys::end_idle()
{
    std::vector<key_pool::key> idle;
    const std::lock_guard guard(_domain.lock);
    for (const std::uint32_t size : _sizes) {
        std::ranges::move(_domain.exported.take_idle(size, _options.spare), std::back_inserter(idle));
    }
}

void exported_keys::run_filler(const std::stop_token& stop)
{
    constexpr std::chrono::steady_clock::duration shortest = std::chrono::milliseconds(1); // a thread, not a spin loop
    const auto period                                      = std::max(duration_of(_options.idle), shortest);
    auto next_end                                          = std::chrono::steady_clock::now() + period;
    while (!stop.stop_requested()) {
        bool wants_more = false;
        {
            std::unique_lock guard(_filler_lock);
            _is_low.wait_until(guard, stop, next_end, [&] { return _wants_more; });
            wants_more = std::exchange(_wants_more, false);
        }
        try {
            if (wants_more && !stop.stop_requested()) {
                fill();
            }
            if (const auto now = std::chrono::steady_clock::now(); now >= next_end) {
                end_idle();
                next_end = now + period;
            }
        } catch (const std::exception& failure) {
            ucs_debug("spare keys for export: %s", failure.what());
        }
    }
}

void exported_keys::wake_filler()
{
    if (_domain.exported.is_at_limit()) {
        return; // it can make none
    }
    const std::lock_guard guard(_filler_lock);
    _wants_more = true;
    _is_low.notify_one();
}

// From half of the spare keys on.
void exported_keys::refill_if_low(std::uint32_t octowords)
{
    if (_domain.exported.num_ready(octowords) * 2 < _options.spare) {
        wake_filler();
    }
}

exported_handle exported_keys::handle_of(std::uint32_t key, std::uint64_t created, std::uintptr_t address,
                                         std::uint64_t length)
{
    exported_handle handle{.key = {.key = key, .vhca_id = _domain.caps.vhca_id, .created = created, .token = _token},
                           .address      = address,
                           .memory_bytes = length};
    while (!_announced.empty() && handle.num_announced < exported_handle::max_announced) {
        handle.announced[handle.num_announced++] = _announced.front();
        _announced.pop_front();
    }
    return handle;
}

exported_handle exported_keys::handle_of(const region& region, std::uintptr_t address)
{
    const std::lock_guard guard(_domain.lock);
    auto handle      = handle_of(region.key(), region.key_created(), address, region.length());
    handle.is_window = true;
    return handle;
}

// Keeps keys of that size ready from now on.
void exported_keys::expect_size(std::uint32_t octowords)
{
    if (std::ranges::find(_sizes, octowords) == _sizes.end()) {
        _sizes.push_back(octowords);
        wake_filler();
    }
}

// If one may come: from somebody who uses it, or from the thread. After that time one that rests is better than none.
result<void> exported_keys::wait_for_key(std::unique_lock<std::mutex>& lock, std::uint32_t octowords)
{
    key_pool& pool        = _domain.exported;
    const bool comes_back = pool.num_existing() > pool.num_unused();
    if (_options.when_empty != empty_pool_option::wait || (_options.spare == 0 && !comes_back)) {
        return {};
    }
    if (!pool.wait_for_unused(lock, octowords, std::chrono::steady_clock::now() + duration_of(_options.wait)) &&
        !pool.has_unused(octowords)) {
        return fail(errc::no_resource, "no key came back in time (UCX_LAYOUT_KEYS_EXPORT_WAIT)");
    }
    return {};
}

result<void> exported_keys::prepare_for_region(std::uint32_t octowords)
{
    std::unique_lock lock(_domain.lock);
    expect_size(octowords);
    refill_if_low(octowords);
    return wait_for_key(lock, octowords);
}

// A plain buffer needs neither a plan nor a region: its entries are known, and they fit into the request.
result<void> exported_keys::bind(const key_pool::key& key, std::uintptr_t address, std::uint64_t length,
                                 std::uint32_t lkey)
{
    alignas(64) std::array<std::byte, max_buffer_entries * klm_bytes> encoded;
    const std::size_t count = num_entries(length);
    const auto place        = std::span(encoded).first(entries_bytes(key_kind::klm, count));
    std::ranges::fill(place, std::byte{0});
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t offset = i * entry_bytes;
        const resolved_entry entry{
            .key = lkey, .address = address + offset, .length = std::min(entry_bytes, length - offset)};
        UCXL_TRY(encode_entries(key_kind::klm, 0, std::span(&entry, 1), place.subspan(i * klm_bytes, klm_bytes)));
    }
    const bind_request wanted{.key           = key.number,
                              .rights        = {.local_write   = true,
                                                .remote_read   = true,
                                                .remote_write  = true,
                                                .remote_atomic = _domain.found.atomics},
                              .length        = length,
                              .start_address = address};
    request_bytes request;
    encode_bind(wanted, _domain.queue.qpn(), _domain.change_flags(), place, request);
    ++_domain.num_binds;
    return _domain.queue.execute(std::span(&request, 1));
}

// A key that cannot be invalidated is destroyed.
void exported_keys::take_back(key_pool::key&& key) noexcept
{
    try {
        request_bytes request;
        encode_invalidate(key.number, _domain.queue.qpn(), _domain.change_flags(), request);
        ++_domain.num_invalidations;
        if (const auto done = _domain.queue.execute(std::span(&request, 1)); !done) {
            ucs_warn("the key 0x%x of exported memory could not be invalidated and is destroyed: %s", key.number,
                     done.error().message.c_str());
            return;
        }
        _domain.exported.give_back(std::move(key));
    } catch (const std::bad_alloc&) {
        ucs_warn("the key 0x%x of exported memory is destroyed: no memory to invalidate it", key.number);
    }
}

result<key_pool::key> exported_keys::take(std::unique_lock<std::mutex>& lock, std::uint32_t octowords)
{
    key_pool& pool = _domain.exported;
    if (pool.num_ready(octowords) == 0) {
        expect_size(octowords);
        wake_filler();
        if (_options.when_empty == empty_pool_option::fresh) {
            return fail(errc::no_resource, "no key is ready (UCX_LAYOUT_KEYS_EXPORT_EMPTY is fresh)");
        }
        UCXL_TRY(wait_for_key(lock, octowords));
    }
    auto key = UCXL_TRY(pool.take(octowords));
    refill_if_low(octowords);
    return key;
}

void exported_keys::put(const void* memh, key_pool::key&& key)
{
    if (_unused_nodes.empty()) {
        _buffers.try_emplace(memh, std::move(key));
    } else {
        auto node = std::move(_unused_nodes.back());
        _unused_nodes.pop_back();
        node.key()    = memh;
        node.mapped() = std::move(key);
        _buffers.insert(std::move(node));
    }
    _num_buffers.store(_buffers.size(), std::memory_order_relaxed);
}

result<exported_handle> exported_keys::add(const void* memh, std::uintptr_t address, std::uint64_t length,
                                           std::uint32_t lkey)
{
    const std::size_t most =
        std::min(max_buffer_entries, max_inline_entries(key_kind::klm, _domain.queue.max_request()));
    if (num_entries(length) > most) {
        return fail(errc::exceeds_limit, std::format("length is {}, the limit is {}", length, most * entry_bytes));
    }
    std::unique_lock lock(_domain.lock);
    auto known = _buffers.find(memh);
    if (known == _buffers.end()) {
        auto key = UCXL_TRY(take(lock, octowords_for(length)));
        known    = _buffers.find(memh); // another thread may have come first while this one waited
        if (known != _buffers.end()) {
            _domain.exported.give_back(std::move(key));
        } else {
            const std::uint32_t number  = key.number;
            const std::uint64_t created = key.created;
            if (const auto done = bind(key, address, length, lkey); !done) {
                take_back(std::move(key));
                return std::unexpected(done.error());
            }
            try {
                put(memh, std::move(key));
            } catch (const std::bad_alloc&) {
                if (key.mkey != nullptr) { // otherwise it ended in put()
                    take_back(std::move(key));
                }
                throw;
            }
            return handle_of(number, created, address, length);
        }
    }
    return handle_of(known->second.number, known->second.created, address, length);
}

bool exported_keys::remove(const void* memh) noexcept
{
    if (num_buffers() == 0) {
        return false;
    }
    const std::lock_guard guard(_domain.lock);
    auto found = _buffers.extract(memh);
    if (!found) {
        return false;
    }
    _num_buffers.store(_buffers.size(), std::memory_order_relaxed);
    take_back(std::move(found.mapped()));
    if (_unused_nodes.size() < most_unused_nodes) {
        found.mapped() = {};
        _unused_nodes.push_back(std::move(found)); // has room
    }
    return true;
}

} // namespace ucxl::mlx5
