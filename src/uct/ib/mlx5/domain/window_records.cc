#include "window_records.h"

#include "abi/log.h"
#include "abi/uct.h"
#include "key_mark.h"
#include "sys/rollback.h"
#include "ucs/layout/build.h"

#include <algorithm>
#include <format>

namespace ucxl::mlx5
{

namespace
{

key_counts counts_of(const window_key& key)
{
    return key.is_suspended() ? key_counts{.suspended = 1} : key_counts{.live = 1, .entries = key.cost().octowords};
}

// No other transport reaches memory of a card, not even on the same host.
bool is_only_for_cards(const window_handle& handle)
{
    return handle.record == nullptr || handle.record->key == nullptr || handle.record->key->shows_card_memory();
}

} // namespace

// UCP has given its handles back; those that it lost keep records without keys.
window_records::~window_records()
{
    for (const auto& [address, record] : _records) {
        record->drop_own_keys();
        record->end_exported_keys();
        record->key.reset();
    }
    _of_card_memory.drop_own_keys();
}

std::shared_ptr<window_record> window_records::find(const std::byte* address) const
{
    const auto found = _records.find(address);
    return found == _records.end() ? nullptr : found->second;
}

template <typename Action>
auto window_records::act_on(const window_record& record, Action&& act)
{
    const key_counts before = counts_of(*record.key);
    const rollback done([&] { _device.change(before, counts_of(*record.key)); });
    return act(*record.key);
}

result<bool> window_records::resume_if_known(const window_content& content)
{
    const auto known = find(content.address);
    if (known == nullptr) {
        return false;
    }
    if (known->key->is_lost() || known->key->content().shape != content.shape ||
        known->key->content().bases != content.bases) {
        remove_locked(content.address);
        return false;
    }
    UCXL_TRY(act_on(*known, [](window_key& key) { return key.resume(); }));
    return true;
}

result<std::optional<window_key::planned>> window_records::plan(const window_content& content, key_choice choice)
{
    if (content.address != nullptr) {
        const std::lock_guard guard(_lock);
        if (UCXL_TRY(resume_if_known(content))) {
            return std::nullopt;
        }
    }
    // Without the lock: UCP may be waiting for it to send other windows.
    open_device& device = *UCXL_TRY(_device.get());
    return UCXL_TRY(window_key::plan(device.keys, *device.memory, content, choice));
}

result<bool> window_records::bind(const window_content& content, window_key::planned&& planned)
{
    const std::lock_guard guard(_lock);
    // A user of the window in another context, or in none, may have registered it meanwhile, and sends with its key.
    if (UCXL_TRY(resume_if_known(content))) {
        return false;
    }
    UCXL_TRY(add_record(content, std::move(planned)));
    return true;
}

result<std::shared_ptr<window_record>> window_records::add_record(const window_content& content,
                                                                  window_key::planned&& planned)
{
    open_device& device = *UCXL_TRY(_device.get());
    auto record         = std::make_shared<window_record>();
    record->key         = UCXL_TRY(window_key::create(device.keys, *device.memory, content, std::move(planned)));
    _records.emplace(content.address, record);
    _device.change({}, counts_of(*record->key));
    return record;
}

void window_records::suspend(const std::byte* address) noexcept
{
    const std::lock_guard guard(_lock);
    if (const auto record = find(address)) {
        record->drop_own_keys();
        record->suspend_exported_keys();
        act_on(*record, [](window_key& key) { key.suspend(); });
    }
}

result<void> window_records::resume(const std::byte* address)
{
    const std::lock_guard guard(_lock);
    const auto record = find(address);
    return record == nullptr ? result<void>() : act_on(*record, [](window_key& key) { return key.resume(); });
}

result<void> window_records::rebind(const window_content& content)
{
    {
        const std::lock_guard guard(_lock);
        if (find(content.address) == nullptr) {
            return {};
        }
    }
    base_memory& memory = *UCXL_TRY(_device.get())->memory;
    auto shown = UCXL_TRY(window_key::hold(memory, content.shape, content.bases)); // without the lock, as in plan()
    const std::lock_guard guard(_lock);
    const auto record = find(content.address);
    if (record == nullptr) {
        return {};
    }
    record->drop_own_keys();
    auto done = act_on(*record, [&](window_key& key) { return key.rebind(content.bases, std::move(shown)); });
    if (done) {
        record->rebind_exported_keys(content.bases);
    } else if (record->key->is_lost()) {
        remove_locked(content.address);
    }
    return done;
}

bool window_records::has_key(const std::byte* address) const
{
    const std::lock_guard guard(_lock);
    const auto record = find(address);
    return record != nullptr && !record->key->is_suspended();
}

void window_records::remove(const std::byte* address) noexcept
{
    const std::lock_guard guard(_lock);
    remove_locked(address);
}

void window_records::remove_locked(const std::byte* address) noexcept
{
    if (const auto found = _records.extract(address)) {
        found.mapped()->drop_own_keys();
        found.mapped()->suspend_exported_keys();
        const key_counts before = counts_of(*found.mapped()->key);
        found.mapped()->key.reset();
        _device.change(before, {});
    }
}

// The record of the window that holds the address. A window that was mapped without this domain gets its key now.
result<std::shared_ptr<window_record>> window_records::record_for(const void* address, std::uint64_t length)
{
    const auto* const first = static_cast<const std::byte*>(address);
    const auto after        = _records.upper_bound(first);
    if (after != _records.begin()) {
        const auto& [start, record] = *std::prev(after);
        if (!record->key->is_suspended() &&
            first - start < static_cast<std::ptrdiff_t>(std::max<std::uint64_t>(record->key->content().length, 1))) {
            return record;
        }
    }
    const auto content = _device.windows().find(address);
    if (!content) {
        return fail(errc::invalid_param, std::format("{} bytes at {} are not inside a live window", length, address));
    }
    if (content->length == 0) {
        return std::shared_ptr<window_record>(); // no transfer has bytes for it
    }
    if (const auto known = find(content->address)) { // of a live window, and suspended
        UCXL_TRY(act_on(*known, [](window_key& key) { return key.resume(); }));
        return known;
    }
    open_device& device = *UCXL_TRY(_device.get());
    return add_record(*content, UCXL_TRY(window_key::plan(device.keys, *device.memory, *content, key_choice::always)));
}

result<window_handle*> window_records::make_handle(const void* address, std::uint64_t length)
{
    const std::lock_guard guard(_lock);
    auto record        = UCXL_TRY(record_for(address, length));
    auto* const handle = UCXL_TRY(handle_table::instance().take());
    if (record != nullptr) {
        handle->lkey = handle->rkey = record->key->key();
        handle->record              = std::move(record);
    }
    return handle;
}

void window_records::drop_exported_key(window_handle& handle) noexcept
{
    if (handle.exported_key != nullptr) {
        handle.exported_key.reset();
        _device.change({.exported_windows = 1}, {});
    }
}

void window_records::give_back(window_handle& handle) noexcept
{
    const std::lock_guard guard(_lock);
    window_record& record = handle.record != nullptr ? *handle.record : _of_card_memory;
    std::erase(record.with_own_keys, &handle);
    if (handle.own_key != nullptr) {
        handle.own_key.reset(); // peers lose it here
        _device.show();
    }
    drop_exported_key(handle);
    handle_table::instance().give_back(&handle);
}

void window_records::drop_own_keys_in(std::span<const std::byte> card_memory) noexcept
{
    const std::lock_guard guard(_lock);
    _of_card_memory.drop_own_keys_in(card_memory);
}

// Beside the key of the record, which lives.
result<std::unique_ptr<window_key>> window_records::make_other_key(window_handle& handle, bool is_exported)
{
    open_device& device = *UCXL_TRY(_device.get());
    handle.record->note_with_own_keys(handle);
    const window_content& content = handle.record->key->content();
    auto shown                    = UCXL_TRY(window_key::hold(*device.memory, content.shape, content.bases));
    return window_key::create(device.keys, *device.memory, content, {std::move(shown), {}}, is_exported);
}

// The key that the memory has is shared with its neighbours.
result<std::unique_ptr<window_key>> window_records::make_key_of_card_memory(window_handle& handle)
{
    open_device& device = *UCXL_TRY(_device.get());
    _of_card_memory.note_with_own_keys(handle);
    const window_content content{.address = handle.card_memory.data(),
                                 .length  = handle.card_memory.size(),
                                 .shape   = UCXL_TRY(make_contig(1, {.length = handle.card_memory.size()})),
                                 .bases   = {handle.card_memory.data()}};
    auto shown = UCXL_TRY(window_key::hold(*device.memory, content.shape, content.bases));
    return window_key::create(device.keys, *device.memory, content, {std::move(shown), {}});
}

result<void> window_records::give_own_key(window_handle& handle)
{
    if (handle.alias != nullptr && !handle.own_alias) {
        const exported_key& owner = handle.alias->owner;
        handle.own_alias          = UCXL_TRY(key_alias::create(_device.pd(), owner.vhca_id, owner.key, owner.token));
        handle.rkey               = handle.own_alias->key();
    }
    if (handle.own_key != nullptr) {
        return {};
    }
    if (handle.card_memory.data() != nullptr) {
        handle.own_key = UCXL_TRY(make_key_of_card_memory(handle));
    } else if (handle.record == nullptr || handle.record->key == nullptr) {
        return {};
    } else if (handle.record->key->is_suspended()) {
        return fail(errc::invalid_param, "the window is not mapped any more");
    } else {
        handle.own_key = UCXL_TRY(make_other_key(handle, false));
    }
    handle.rkey = handle.own_key->key();
    _device.show();
    return {};
}

// Whether the peer may have the key of the handle. Stock UCX sends a rendezvous message without a key if packing fails,
// and the peer's process then ends by an assertion (ucp_proto_rndv_receive_start of UCX). So packing must not
// fail.
bool window_records::may_hand_out(window_handle& handle, unsigned flags) noexcept
{
    if ((flags & (abi::mkey_pack_params::invalidate_rma | abi::mkey_pack_params::invalidate_amo)) == 0) {
        return true;
    }
    try {
        const auto done = give_own_key(handle);
        if (!done) {
            ucs_diag("%s: a peer reaches a window by messages: %s", _device.name(), done.error().message.c_str());
        }
        return done.has_value();
    } catch (const std::bad_alloc&) {
        return false;
    }
}

std::uint64_t window_records::packed_key(window_handle& handle, unsigned flags)
{
    const std::lock_guard guard(_lock);
    if (!may_hand_out(handle, flags) || handle.rkey == no_key) {
        return marked_key(no_key, no_host);
    }
    return is_only_for_cards(handle) ? unmarked_key(handle.rkey) : marked_key(handle.rkey, this_host());
}

result<exported_handle> window_records::export_handle(window_handle& handle, exported_keys& exports)
{
    std::unique_lock lock(_lock);
    if (handle.exported_key == nullptr) {
        lock.unlock(); // it may wait
        UCXL_TRY(exports.prepare_for_region(window_key_octowords));
        lock.lock();
    }
    if (handle.record == nullptr) {
        return fail(errc::unsupported, "memory of a network card, imported memory and empty windows are not exported");
    }
    const window_key* const shown = handle.record->key.get();
    if (shown == nullptr || shown->is_suspended()) {
        return fail(errc::invalid_param, "the window is not mapped any more");
    }
    if (shown->shows_card_memory()) {
        return fail(errc::unsupported, "windows over memory of a network card are not exported");
    }
    auto& key = handle.exported_key;
    if (key != nullptr && !key->is_lost()) {
        if (key->content().bases != shown->content().bases) {
            UCXL_TRY(key->rebind(shown->content().bases));
        }
        UCXL_TRY(key->resume());
    } else {
        drop_exported_key(handle);
        key = UCXL_TRY(make_other_key(handle, true));
        _device.change({}, {.exported_windows = 1});
    }
    return exports.handle_of(key->shown_by(), reinterpret_cast<std::uintptr_t>(shown->content().address));
}

} // namespace ucxl::mlx5
