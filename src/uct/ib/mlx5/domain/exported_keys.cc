#include "exported_keys.h"

#include "sys/rollback.h"
#include "uct/abi/log.h"

#include <algorithm>
#include <array>

#include <sys/random.h>

namespace ucxl::mlx5
{

namespace
{

constexpr std::size_t most_unused        = 256;                    // after a burst of exports
constexpr std::uint32_t buffer_octowords = 4;                      // the least that a list has
constexpr std::uint64_t entry_bytes      = std::uint64_t{1} << 31; // a buffer beyond has more entries

std::size_t num_entries(std::uint64_t length)
{
    return std::max<std::uint64_t>((length + entry_bytes - 1) / entry_bytes, 1);
}

} // namespace

result<std::unique_ptr<exported_keys>> exported_keys::create(domain& keys, unsigned spare)
{
    if (keys.found.address != address_method::umr) {
        return fail(errc::unsupported, "the address of a key that others may use cannot be chosen by its bind request");
    }
    std::unique_ptr<exported_keys> created(new exported_keys(keys, spare));
    UCXL_TRY(created->start());
    return created;
}

result<void> exported_keys::start()
{
    if (getrandom(_token.data(), _token.size(), 0) != static_cast<ssize_t>(_token.size())) {
        return fail_errno("a random token");
    }
    _domain.exported.keep(std::max<std::size_t>(most_unused, 2 * std::size_t{_spare}));
    _domain.exported.prepare_keys(
        [this](const mlx5dv_mkey& fresh) { return allow_access(_domain.pd->context, fresh.lkey, _token); });
    auto first = UCXL_TRY(_domain.exported.create(buffer_octowords)); // tells whether the device allows it
    {
        const std::lock_guard guard(_domain.lock);
        _domain.exported.give_back(std::move(first));
    }
    fill();
    _filler = std::jthread([this](const std::stop_token& stop) { keep_full(stop); });
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

void exported_keys::fill()
{
    for (;;) {
        {
            const std::lock_guard guard(_domain.lock);
            if (_domain.exported.num_unused(buffer_octowords) >= _spare) {
                return;
            }
        }
        auto key = _domain.exported.create(buffer_octowords);
        if (!key) {
            ucs_debug("spare keys for export: %s", key.error().message.c_str());
            return;
        }
        const std::lock_guard guard(_domain.lock);
        _domain.exported.give_back(std::move(*key));
    }
}

void exported_keys::keep_full(const std::stop_token& stop)
{
    for (;;) {
        {
            std::unique_lock guard(_filler_lock);
            if (!_is_low.wait(guard, stop, [&] { return _wants_more; })) {
                return;
            }
            _wants_more = false;
        }
        try {
            fill();
        } catch (const std::exception& failure) {
            ucs_debug("spare keys for export: %s", failure.what());
        }
    }
}

bool exported_keys::is_running_low() const
{
    return _domain.exported.num_unused(buffer_octowords) * 2 < _spare;
}

void exported_keys::wake_filler()
{
    const std::lock_guard guard(_filler_lock);
    _wants_more = true;
    _is_low.notify_one();
}

exported_handle exported_keys::handle_of(std::uint32_t key, std::uint64_t created) const
{
    return {.key = key, .vhca_id = _domain.caps.vhca_id, .created = created, .token = _token};
}

exported_handle exported_keys::handle_of(const region& region) const
{
    return handle_of(region.key(), region.key_created());
}

// A plain buffer needs neither a plan nor a region: its entries are known, and they fit into the request.
result<void> exported_keys::bind(const key_pool::key& key, std::uintptr_t address, std::uint64_t length,
                                 std::uint32_t lkey)
{
    std::array<resolved_entry, max_buffer_entries> entries;
    alignas(64) std::array<std::byte, max_request_bytes> encoded;
    const std::size_t count = num_entries(length);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t offset = i * entry_bytes;
        entries[i] = {.key = lkey, .address = address + offset, .length = std::min(entry_bytes, length - offset)};
    }
    const auto place = std::span(encoded).first(entries_bytes(key_kind::klm, count));
    UCXL_TRY(encode_entries(key_kind::klm, 0, std::span(entries).first(count), place));
    const bind_request wanted{.key           = key.mkey->lkey,
                              .rights        = {.local_write   = true,
                                                .remote_read   = true,
                                                .remote_write  = true,
                                                .remote_atomic = _domain.found.atomics},
                              .length        = length,
                              .start_address = address};
    request_bytes request;
    encode_bind(wanted, _domain.queue.qpn(), {}, place, request);
    ++_domain.num_binds;
    return _domain.queue.execute(std::span(&request, 1));
}

// A key that cannot be invalidated is destroyed.
void exported_keys::take_back(key_pool::key&& key) noexcept
{
    try {
        request_bytes request;
        encode_invalidate(key.mkey->lkey, _domain.queue.qpn(), {}, request);
        ++_domain.num_invalidations;
        if (const auto done = _domain.queue.execute(std::span(&request, 1)); !done) {
            ucs_warn("the key 0x%x of exported memory could not be invalidated and is destroyed: %s", key.mkey->lkey,
                     done.error().message.c_str());
            return;
        }
        _domain.exported.give_back(std::move(key));
    } catch (const std::bad_alloc&) {
        ucs_warn("the key 0x%x of exported memory is destroyed: no memory to invalidate it", key.mkey->lkey);
    }
}

result<exported_handle> exported_keys::add(const void* memh, std::uintptr_t address, std::uint64_t length,
                                           std::uint32_t lkey)
{
    const std::size_t most =
        std::min(max_buffer_entries, max_inline_entries(key_kind::klm, _domain.queue.max_request()));
    if (num_entries(length) > most) {
        return fail(errc::exceeds_limit, std::format("length is {}, the limit is {}", length, most * entry_bytes));
    }
    const std::lock_guard guard(_lock);
    const auto [place, is_new] = _buffers.try_emplace(memh);
    key_pool::key& key         = place->second;
    if (is_new) {
        rollback undo([&] { _buffers.erase(place); });
        bool is_low = false;
        {
            const std::lock_guard domain_guard(_domain.lock);
            key             = UCXL_TRY(_domain.exported.take(
                static_cast<std::uint32_t>(std::max<std::size_t>(num_entries(length), buffer_octowords))));
            const auto done = bind(key, address, length, lkey);
            if (!done) {
                take_back(std::move(key));
                return std::unexpected(done.error());
            }
            is_low = is_running_low();
        }
        undo.cancel();
        _num_buffers.fetch_add(1, std::memory_order_relaxed);
        if (is_low) {
            wake_filler();
        }
    }
    return handle_of(key.mkey->lkey, key.created);
}

bool exported_keys::remove(const void* memh) noexcept
{
    if (num_buffers() == 0) {
        return false;
    }
    const std::lock_guard guard(_lock);
    auto found = _buffers.extract(memh);
    if (!found) {
        return false;
    }
    _num_buffers.fetch_sub(1, std::memory_order_relaxed);
    const std::lock_guard domain_guard(_domain.lock);
    take_back(std::move(found.mapped()));
    return true;
}

} // namespace ucxl::mlx5
