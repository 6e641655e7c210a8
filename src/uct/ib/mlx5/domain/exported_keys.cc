#include "exported_keys.h"

#include "sys/rollback.h"
#include "ucs/layout/build.h"
#include "uct/abi/log.h"
#include "uct/ib/mlx5/layout/bind.h"

#include <sys/random.h>

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint32_t buffer_octowords = 4;                      // one request's worth, the least that a list has
constexpr std::uint64_t buffer_bytes     = std::uint64_t{1} << 31; // of one entry

std::uint32_t octowords_for(std::uint64_t length)
{
    const std::uint64_t entries = length / buffer_bytes + 1;
    return entries <= buffer_octowords ? buffer_octowords : window_key_octowords;
}

region_options options_for(const domain& domain, std::uintptr_t address, std::uint64_t length)
{
    return {.rights      = {.local_write   = true,
                            .remote_read   = true,
                            .remote_write  = true,
                            .remote_atomic = domain.found.atomics},
            .max_entries = octowords_for(length),
            .address     = address,
            .is_exported = true};
}

// A region that may still be bound destroys its key.
void take_back(region& region) noexcept
{
    try {
        if (const auto done = suspend(region); !done) {
            ucs_warn("the key 0x%x of exported memory could not be invalidated and is destroyed: %s", region.key(),
                     done.error().message.c_str());
        }
    } catch (const std::bad_alloc&) {
        ucs_warn("the key 0x%x of exported memory is destroyed: no memory to invalidate it", region.key());
    }
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
    for (auto& [memh, region] : _buffers) {
        take_back(*region);
    }
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

void exported_keys::note_taken()
{
    {
        const std::lock_guard guard(_domain.lock);
        if (_domain.exported.num_unused(buffer_octowords) * 2 >= _spare) {
            return;
        }
    }
    const std::lock_guard guard(_filler_lock);
    _wants_more = true;
    _is_low.notify_one();
}

exported_handle exported_keys::handle_of(const region& region) const
{
    return {.key = region.key(), .vhca_id = _domain.caps.vhca_id, .created = region.key_created(), .token = _token};
}

result<exported_handle> exported_keys::add(const void* memh, std::uintptr_t address, std::uint64_t length,
                                           std::uint32_t lkey)
{
    const std::lock_guard guard(_lock);
    const auto [place, is_new] = _buffers.try_emplace(memh);
    if (!is_new) {
        return handle_of(*place->second);
    }
    rollback undo([&] { _buffers.erase(place); });
    const auto layout      = UCXL_TRY(make_contig(1, {.length = length, .nested = nullptr}));
    auto made              = UCXL_TRY(region::create(_domain, options_for(_domain, address, length)));
    const source_base base = {.address = address, .lkey = lkey};
    UCXL_TRY(made->prepare(layout, std::span(&base, 1)));
    region* const one = made.get();
    UCXL_TRY(bind_all(std::span(&one, 1), false));
    place->second = std::move(made);
    undo.cancel();
    _num_buffers.fetch_add(1, std::memory_order_relaxed);
    note_taken();
    return handle_of(*one);
}

bool exported_keys::remove(const void* memh) noexcept
{
    if (num_buffers() == 0) {
        return false;
    }
    const std::lock_guard guard(_lock);
    const auto found = _buffers.extract(memh);
    if (!found) {
        return false;
    }
    _num_buffers.fetch_sub(1, std::memory_order_relaxed);
    take_back(*found.mapped());
    return true;
}

} // namespace ucxl::mlx5
