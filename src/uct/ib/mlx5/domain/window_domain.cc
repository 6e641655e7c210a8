#include "window_domain.h"

#include "abi/log.h"
#include "device_window_keys.h"
#include "domain_options.h"
#include "imported_windows.h"
#include "key_mark.h"
#include "sys/rollback.h"
#include "ucs/sys/status.h"
#include "uct/ib/mlx5/layout/device_report.h"

#include <algorithm>
#include <cstring>

namespace ucxl::mlx5
{

window_domain::window_domain(const abi::stock_domain& stock, ibv_pd* pd, std::string device,
                             const window_directory& windows)
    : domain_layer(stock), _pd(pd), _device_name(std::move(device)), _windows(windows),
      _shown(windows.show_domain(_device_name)), _aliases(pd, read_key_options().aliases)
{
    rollback undo([&] { _windows.hide_domain(_shown); });
    device_window_keys::instance().add(this);
    undo.cancel();
}

// UCP has given its handles back; those that it lost keep records without keys.
window_domain::~window_domain()
{
    device_window_keys::instance().remove(this);
    if (_offers_memory) {
        --device_window_keys::instance().window_domain_offers;
    }
    const std::lock_guard guard(_lock);
    _windows.hide_domain(_shown);
    for (const auto& [address, record] : _records) {
        record->drop_own_keys();
        record->end_exported_keys();
        record->key.reset();
    }
}

result<std::unique_ptr<window_domain::device_side>> window_domain::open_device()
{
    auto parts      = UCXL_TRY(domain::open(_pd, domain::default_port, domain::default_depth));
    auto registered = UCXL_TRY(base_memory::create(_pd));
    auto opened     = std::make_unique<device_side>(_pd, std::move(parts), std::move(registered));
    stock_keys(opened->keys);
    return opened;
}

result<window_domain::device_side*> window_domain::device()
{
    const bool was_open = _device.existing() != nullptr;
    auto device         = _device.get([this] { return open_device(); });
    if (!device) {
        const std::string& reason = device.error().message;
        if (!std::exchange(_was_unusable, true)) {
            ucs_diag("%s: windows get no hardware keys: %s", _device_name.c_str(), reason.c_str());
        }
        _windows.show_unusable(_shown, reason);
        return fail(errc::no_device, _device_name + ": " + reason);
    }
    if (!was_open) {
        if (_was_unusable) {
            _windows.show_unusable(_shown, "");
        }
        _windows.show_choices(_shown, choices((*device)->keys));
        show();
    }
    return device;
}

std::shared_ptr<window_record> window_domain::find(const std::byte* address) const
{
    const auto found = _records.find(address);
    return found == _records.end() ? nullptr : found->second;
}

void window_domain::count(const window_key& key, bool is_there)
{
    const std::uint64_t one = is_there ? 1 : ~std::uint64_t{0}; // or minus one
    if (key.is_suspended()) {
        _num_suspended += one;
    } else {
        _num_live += one;
        _num_entries += one * key.cost().octowords;
    }
}

template <typename Action>
auto window_domain::act_on(const window_record& record, Action&& act)
{
    count(*record.key, false);
    const rollback done([&] {
        count(*record.key, true);
        show();
    });
    return act(*record.key);
}

result<bool> window_domain::resume_if_known(const window_content& content)
{
    const auto known = find(content.address);
    if (known == nullptr) {
        return false;
    }
    if (known->key->content().shape != content.shape || known->key->content().bases != content.bases) {
        remove_locked(content.address);
        return false;
    }
    UCXL_TRY(act_on(*known, [](window_key& key) { return key.resume(); }));
    return true;
}

result<std::optional<window_key::planned>> window_domain::plan(const window_content& content, key_choice choice)
{
    device_side* device = nullptr;
    {
        const std::lock_guard guard(_lock);
        if (content.address != nullptr && UCXL_TRY(resume_if_known(content))) {
            return std::nullopt;
        }
        device = UCXL_TRY(this->device());
    }
    // Without the lock: UCP may be waiting for it to send other windows.
    return UCXL_TRY(window_key::plan(device->keys, *device->memory, content, choice));
}

result<bool> window_domain::bind(const window_content& content, window_key::planned&& planned)
{
    const std::lock_guard guard(_lock);
    // A user of the window in another context, or in none, may have registered it meanwhile, and sends with its key.
    if (UCXL_TRY(resume_if_known(content))) {
        return false;
    }
    UCXL_TRY(add_record(content, std::move(planned)));
    return true;
}

result<std::shared_ptr<window_record>> window_domain::add_record(const window_content& content,
                                                                 window_key::planned&& planned)
{
    device_side& device = *UCXL_TRY(this->device());
    auto record         = std::make_shared<window_record>();
    record->key         = UCXL_TRY(window_key::create(device.keys, *device.memory, content, std::move(planned)));
    _records.emplace(content.address, record);
    count(*record->key, true);
    show();
    return record;
}

void window_domain::suspend(const std::byte* address) noexcept
{
    const std::lock_guard guard(_lock);
    if (const auto record = find(address)) {
        record->drop_own_keys();
        record->suspend_exported_keys();
        act_on(*record, [](window_key& key) { key.suspend(); });
    }
}

result<void> window_domain::resume(const std::byte* address)
{
    const std::lock_guard guard(_lock);
    const auto record = find(address);
    return record == nullptr ? result<void>() : act_on(*record, [](window_key& key) { return key.resume(); });
}

result<void> window_domain::rebind(const window_content& content)
{
    base_memory* memory = nullptr;
    {
        const std::lock_guard guard(_lock);
        if (find(content.address) == nullptr) {
            return {};
        }
        memory = _device.existing()->memory.get();
    }
    auto shown = UCXL_TRY(window_key::hold(*memory, content.shape, content.bases)); // without the lock, as in make()
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

bool window_domain::has_key(const std::byte* address) const
{
    const std::lock_guard guard(_lock);
    const auto record = find(address);
    return record != nullptr && !record->key->is_suspended();
}

void window_domain::remove(const std::byte* address) noexcept
{
    const std::lock_guard guard(_lock);
    remove_locked(address);
}

void window_domain::remove_locked(const std::byte* address) noexcept
{
    if (const auto found = _records.extract(address)) {
        found.mapped()->drop_own_keys();
        found.mapped()->suspend_exported_keys();
        count(*found.mapped()->key, false);
        found.mapped()->key.reset();
        show();
    }
}

void window_domain::show() const
{
    _windows.show_figures(_shown, figures());
}

domain_figures window_domain::figures() const
{
    domain_figures figures;
    figures.keys_live               = _num_live;
    figures.keys_suspended          = _num_suspended;
    figures.entries                 = _num_entries;
    figures.aliases                 = _aliases.size();
    const device_side* const device = _device.existing();
    if (device == nullptr) {
        return figures;
    }
    if (const card_memory* const card = device->card.existing()) {
        const auto memory    = card->statistics();
        figures.memic_chunks = memory.chunks;
        figures.memic_bytes  = memory.bytes;
        figures.memic_free   = memory.free_bytes;
    }
    const exported_keys* const exports = device->exports.existing();
    figures.bases_registered           = device->memory->bytes();
    figures.keys_spare                 = device->keys.keys.num_unused() + device->keys.roots.num_unused();
    figures.exported                   = _num_exported_windows + (exports != nullptr ? exports->num_buffers() : 0);
    figures.exported_spare             = device->keys.exported.num_unused();
    figures.binds                      = device->keys.num_binds.load(std::memory_order_relaxed);
    figures.invalidations              = device->keys.num_invalidations.load(std::memory_order_relaxed);
    return figures;
}

void window_domain::adjust(abi::memory_type_masks& masks) const
{
    const std::uint64_t copied = _windows.types_of_copied();
    masks.reg                  = (masks.reg & ~copied) | UCS_BIT(UCS_MEMORY_TYPE_RDMA);
    masks.dmabuf &= ~copied;
    if ((masks.alloc & UCS_BIT(UCS_MEMORY_TYPE_RDMA)) != 0 && !_offers_memory.exchange(true)) {
        ++device_window_keys::instance().window_domain_offers;
    }
}

// The record of the window that holds the address. A window that was mapped without this domain gets its key now.
result<std::shared_ptr<window_record>> window_domain::record_for(const void* address, std::uint64_t length)
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
    window_content content;
    if (!_windows.find(address, content)) {
        return fail(errc::invalid_param, std::format("{} bytes at {} are not inside a live window", length, address));
    }
    if (content.length == 0) {
        return std::shared_ptr<window_record>(); // no transfer has bytes for it
    }
    if (const auto known = find(content.address)) { // of a live window, and suspended
        UCXL_TRY(act_on(*known, [](window_key& key) { return key.resume(); }));
        return known;
    }
    device_side& device = *UCXL_TRY(this->device());
    return add_record(content, UCXL_TRY(window_key::plan(device.keys, *device.memory, content, key_choice::always)));
}

result<window_handle*> window_domain::make_handle()
{
    window_handle* const handle = handle_table::instance().take();
    if (handle == nullptr) {
        return fail(errc::no_memory, "there are too many memory handles of windows");
    }
    return handle;
}

result<window_handle*> window_domain::register_range(const void* address, std::uint64_t length)
{
    if (_windows.is_card_memory(address, length)) {
        // Another card cannot reach this memory. UCP registers it there nevertheless; peers are told not to use the
        // key, and local use is copied.
        const auto own     = find_card_memory(address, length);
        auto* const handle = UCXL_TRY(make_handle());
        handle->lkey       = own ? own->key : no_key;
        handle->rkey       = handle->lkey;
        handle->copied_for = own ? nullptr : this;
        return handle;
    }
    const std::lock_guard guard(_lock);
    auto record        = UCXL_TRY(record_for(address, length));
    auto* const handle = UCXL_TRY(make_handle());
    if (record != nullptr) {
        handle->lkey = handle->rkey = record->key->key();
        handle->record              = std::move(record);
    }
    return handle;
}

ucs_status_t window_domain::mem_reg(void* address, std::size_t length, const abi::mem_reg_params* params,
                                    uct_mem_h* memh)
{
    if (!_windows.in_arena(address, length)) {
        const auto status = domain_layer::mem_reg(address, length, params, memh);
        if (status == UCS_OK) {
            const auto start = reinterpret_cast<std::uintptr_t>(address);
            _ranges.add(*memh, {.start = start, .end = start + length});
        }
        return status;
    }
    return guarded("ucp_mem_map of a window", [&] {
        const bool is_meant = _windows.note_registration(this, address, length);
        const auto handle   = is_meant ? register_range(address, length) : make_handle();
        if (!handle) {
            return log_error("ucp_mem_map of a window", handle.error());
        }
        *memh = *handle;
        return UCS_OK;
    });
}

result<card_memory*> window_domain::card()
{
    const std::lock_guard guard(_lock);
    device_side& device = *UCXL_TRY(this->device());
    const auto card     = device.card.get([&] {
        auto made = card_memory::create(device.keys, _windows);
        if (made) {
            device.memory->set_card(**made);
        }
        return made;
    });
    if (!card) {
        return fail(card.error().code, _device_name + ": " + card.error().message);
    }
    return card;
}

// It stays until the domain closes, so it needs the lock no longer than it takes to find it.
card_memory* window_domain::existing_card() const
{
    const std::lock_guard guard(_lock);
    const device_side* const device = _device.existing();
    return device != nullptr ? device->card.existing() : nullptr;
}

std::optional<memic_allocation> window_domain::find_card_memory(const void* address, std::uint64_t length) const
{
    const card_memory* const card = existing_card();
    return card == nullptr ? std::nullopt : card->find(address, length);
}

bool window_domain::copy_card_memory(std::byte* address, std::uint64_t length, std::byte* other,
                                     copy_direction direction)
{
    card_memory* const card = existing_card();
    if (card == nullptr) {
        return false;
    }
    return direction == copy_direction::from_card ? card->read(address, length, other)
                                                  : card->write(address, length, other);
}

result<base_memory::held> window_domain::hold(const memory_range& range)
{
    base_memory* memory = nullptr;
    {
        const std::lock_guard guard(_lock);
        memory = UCXL_TRY(device())->memory.get();
    }
    return memory->hold(range);
}

result<memic_allocation> window_domain::allocate_memory(std::uint64_t length)
{
    card_memory* const card = UCXL_TRY(this->card());
    const auto allocated    = UCXL_TRY(card->allocate(length));
    const std::lock_guard guard(_lock);
    show();
    return allocated;
}

result<std::byte*> window_domain::allocate(std::uint64_t length)
{
    return UCXL_TRY(allocate_memory(length)).address;
}

bool window_domain::free(const std::byte* address)
{
    card_memory* const card = existing_card();
    if (card == nullptr || !card->find(address, 1)) {
        return false;
    }
    if (const auto released = card->release(address); !released) {
        ucs_warn("%s: %s", _device_name.c_str(), released.error().message.c_str());
    }
    const std::lock_guard guard(_lock);
    show();
    return true;
}

// UCP has no way to pass a hint: who asks for memory of type RDMA gets memory of the card or an error.
ucs_status_t window_domain::mem_alloc(std::size_t* length, void** address, const abi::allocation_request& request,
                                      uct_mem_h* memh)
{
    if (request.type != UCS_MEMORY_TYPE_RDMA) {
        return domain_layer::mem_alloc(length, address, request, memh);
    }
    constexpr auto name = "ucp_mem_map of memory of a network card";
    return guarded(name, [&] {
        const auto card = this->card();
        if (!card) {
            ucs_debug("%s: %s", name, card.error().message.c_str());
            return UCS_ERR_UNSUPPORTED;
        }
        const auto handle = make_handle();
        if (!handle) {
            return log_error(name, handle.error());
        }
        rollback undo([&] { handle_table::instance().give_back(*handle); });
        const auto allocated = allocate_memory(std::max<std::uint64_t>(*length, 1));
        if (!allocated) {
            const error& reason = allocated.error();
            if ((request.flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) != 0) {
                ucs_debug("%s: %s", name, reason.message.c_str());
                return to_status(reason.code);
            }
            return log_error(name, reason);
        }
        undo.cancel();
        (*handle)->lkey = (*handle)->rkey = allocated->key;
        (*handle)->owned_card_memory      = allocated->address;
        *length                           = allocated->length;
        *address                          = allocated->address;
        *memh                             = *handle;
        return UCS_OK;
    });
}

ucs_status_t window_domain::mem_free(uct_mem_h memh)
{
    if (!handle_table::instance().holds(memh)) {
        return domain_layer::mem_free(memh);
    }
    auto* const handle = static_cast<window_handle*>(memh);
    free(static_cast<const std::byte*>(handle->owned_card_memory));
    handle_table::instance().give_back(handle);
    return UCS_OK;
}

ucs_status_t window_domain::mem_dereg(const abi::mem_dereg_params* params)
{
    if (!handle_table::instance().holds(params->memh)) {
        if (exported_keys* const exports = _exports; exports != nullptr && exports->remove(params->memh)) {
            const std::lock_guard guard(_lock);
            show();
        }
        _ranges.remove(params->memh);
        return domain_layer::mem_dereg(params);
    }
    auto* const handle    = static_cast<window_handle*>(params->memh);
    const bool has_flags  = (params->field_mask & abi::mem_dereg_params::has_flags) != 0;
    const bool invalidate = has_flags && (params->flags & abi::mem_dereg_params::invalidate) != 0;
    if (handle->alias != nullptr) {
        if (handle->imported_address) {
            imported_windows::instance().remove(*handle->imported_address, *handle->alias);
        }
        _aliases.give_back(handle->alias);
    }
    {
        const std::lock_guard guard(_lock);
        if (handle->record != nullptr) {
            const bool had_own_keys = handle->has_own_keys();
            std::erase(handle->record->with_own_keys, handle);
            handle->own_key.reset(); // peers lose it here
            _num_exported_windows -= handle->exported_key != nullptr ? 1 : 0;
            handle->exported_key.reset();
            if (had_own_keys) {
                show();
            }
        }
        handle_table::instance().give_back(handle);
    }
    if (invalidate && (params->field_mask & abi::mem_dereg_params::has_completion) != 0 && params->comp != nullptr) {
        uct_completion_t& done = *params->comp;
        if (--done.count == 0) {
            done.func(&done);
        }
    }
    return UCS_OK;
}

// Advice for the memory below would reach memory of the layout's gaps as well.
ucs_status_t window_domain::mem_advise(uct_mem_h memh, void* address, std::size_t length, unsigned advice)
{
    return handle_table::instance().holds(memh) ? UCS_OK : domain_layer::mem_advise(memh, address, length, advice);
}

result<void> window_domain::give_own_key(window_handle& handle)
{
    if (handle.alias != nullptr && !handle.own_alias) {
        const exported_key& owner = handle.alias->owner;
        handle.own_alias          = UCXL_TRY(key_alias::create(_pd, owner.vhca_id, owner.key, owner.token));
        handle.rkey               = handle.own_alias->key();
    }
    if (handle.own_key != nullptr || handle.record == nullptr || handle.record->key == nullptr) {
        return {};
    }
    if (handle.record->key->is_suspended()) {
        return fail(errc::invalid_param, "the window is not mapped any more");
    }
    device_side& device = *UCXL_TRY(this->device());
    handle.record->note_with_own_keys(handle);
    const window_content& content = handle.record->key->content();
    auto shown                    = UCXL_TRY(window_key::hold(*device.memory, content.shape, content.bases));
    handle.own_key = UCXL_TRY(window_key::create(device.keys, *device.memory, content, {std::move(shown), {}}));
    handle.rkey    = handle.own_key->key();
    show();
    return {};
}

namespace
{

// No other transport reaches memory of a card, not even on the same host.
bool is_only_for_cards(const window_handle& handle)
{
    return handle.record == nullptr || handle.record->key == nullptr || handle.record->key->shows_card_memory();
}

// A peer would take an atomic key from index 0xff0000 on for the mark of a window. Without one UCX does atomic
// operations by the key for puts and gets.
void drop_high_atomic_key(const char* device, void* buffer)
{
    std::uint64_t packed = 0;
    std::memcpy(&packed, buffer, sizeof(packed));
    if (host_of(packed)) {
        packed = unmarked_key(packed);
        std::memcpy(buffer, &packed, sizeof(packed));
        ucs_debug("%s: an atomic key with a high index is not handed out", device);
    }
}

} // namespace

// Whether the peer may have the key of the handle. Stock UCX sends a rendezvous message without a key if packing fails,
// and the peer's process then ends by an assertion (ucp_proto_rndv_receive_start of UCX). So packing must not
// fail.
bool window_domain::may_hand_out(window_handle& handle, unsigned flags) noexcept
{
    if ((flags & (abi::mkey_pack_params::invalidate_rma | abi::mkey_pack_params::invalidate_amo)) == 0) {
        return true;
    }
    try {
        const auto done = give_own_key(handle);
        if (!done) {
            ucs_diag("%s: a peer reaches a window by messages: %s", _device_name.c_str(), done.error().message.c_str());
        }
        return done.has_value();
    } catch (const std::bad_alloc&) {
        return false;
    }
}

ucs_status_t window_domain::mkey_pack(uct_mem_h memh, void* address, std::size_t length,
                                      const abi::mkey_pack_params* params, void* buffer)
{
    const unsigned flags = abi::pack_flags(params);
    if ((flags & abi::mkey_pack_params::exported) != 0) {
        return guarded("ucp_memh_pack for export",
                       [&] { return export_memory(memh, address, length, params, buffer); });
    }
    if (!handle_table::instance().holds(memh)) {
        const ucs_status_t status = domain_layer::mkey_pack(memh, address, length, params, buffer);
        if (status == UCS_OK) {
            drop_high_atomic_key(_device_name.c_str(), buffer);
        }
        return status;
    }
    constexpr auto name = "ucp_rkey_pack of a window";
    auto& handle        = *static_cast<window_handle*>(memh);
    return guarded(name, [&] {
        const std::lock_guard guard(_lock);
        const bool is_refused      = !may_hand_out(handle, flags) || handle.rkey == no_key;
        const std::uint64_t packed = is_refused                  ? marked_key(no_key, no_host)
                                     : is_only_for_cards(handle) ? unmarked_key(handle.rkey)
                                                                 : marked_key(handle.rkey, this_host());
        std::memcpy(buffer, &packed, sizeof(packed));
        return UCS_OK;
    });
}

result<exported_keys*> window_domain::exports()
{
    if (exported_keys* const known = _exports.load(std::memory_order_acquire)) {
        return known;
    }
    const std::lock_guard guard(_lock);
    device_side& device = *UCXL_TRY(this->device());
    const auto made =
        device.exports.get([&] { return exported_keys::create(device.keys, read_key_options().for_export()); });
    if (!made) {
        return fail(made.error().code, _device_name + ": " + made.error().message);
    }
    _exports.store(*made, std::memory_order_release);
    show();
    return made;
}

result<exported_handle> window_domain::export_window(window_handle& handle)
{
    exported_keys* const exports = UCXL_TRY(this->exports());
    std::unique_lock lock(_lock);
    if (handle.exported_key == nullptr) {
        lock.unlock(); // it may wait
        UCXL_TRY(exports->prepare_for_region(window_key_octowords));
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
        _num_exported_windows -= key != nullptr ? 1 : 0;
        key.reset();
        handle.record->note_with_own_keys(handle);
        const window_content& content = shown->content();
        device_side& device           = *UCXL_TRY(this->device());
        auto memory                   = UCXL_TRY(window_key::hold(*device.memory, content.shape, content.bases));
        key = UCXL_TRY(window_key::create(device.keys, *device.memory, content, {std::move(memory), {}}, true));
        ++_num_exported_windows;
    }
    return exports->handle_of(key->shown_by(), reinterpret_cast<std::uintptr_t>(shown->content().address));
}

result<exported_handle> window_domain::export_buffer(uct_mem_h memh, const void* address, std::size_t length)
{
    const auto registered = _ranges.find(memh);
    const auto start      = reinterpret_cast<std::uintptr_t>(address);
    if (!registered || start < registered->start || length > registered->end - start) {
        return fail(errc::unsupported, "the memory was not registered by its address");
    }
    // The kernel fetches pages for keys that it made or can follow, and it does not know repeat blocks.
    const abi::ib_registration known = abi::ib_registration_of(memh);
    if (known.is_paged_on_demand) {
        return fail(errc::unsupported, "the memory is registered with on-demand paging");
    }
    return UCXL_TRY(exports())->add(memh, registered->start, registered->length(), known.lkey);
}

// A plain buffer that cannot have a key of the pool gets what stock UCX exports.
ucs_status_t window_domain::export_memory(uct_mem_h memh, void* address, std::size_t length,
                                          const abi::mkey_pack_params* params, void* buffer)
{
    constexpr auto name = "ucp_memh_pack for export";
    const std::span<std::byte, exported_handle::length> packed(static_cast<std::byte*>(buffer),
                                                               exported_handle::length);
    const bool is_window  = handle_table::instance().holds(memh);
    const bool has_others = abi::pack_flags(params) != abi::mkey_pack_params::exported;
    if (is_window && has_others) {
        ucs_error("%s: a key that can be taken away from peers cannot be exported", name);
        return UCS_ERR_INVALID_PARAM;
    }
    if (is_window || !has_others) {
        const auto handle =
            is_window ? export_window(*static_cast<window_handle*>(memh)) : export_buffer(memh, address, length);
        if (handle) {
            pack(*handle, packed);
            const std::lock_guard guard(_lock);
            show();
            return UCS_OK;
        }
        if (is_window) {
            return log_error(name, handle.error());
        }
        ucs_debug("%s: a key of UCX, because %s", name, handle.error().message.c_str());
    }
    std::ranges::fill(packed, std::byte{0});
    return domain_layer::mkey_pack(memh, address, length, params, buffer);
}

bool window_domain::exports_with(const access_token& token) const
{
    const exported_keys* const exports = _exports.load(std::memory_order_acquire);
    return exports != nullptr && exports->has_token(token);
}

result<staged_copies*> window_domain::copies()
{
    const std::lock_guard guard(_lock);
    device_side& device = *UCXL_TRY(this->device());
    return device.copies.get([this] { return staged_copies::create(_pd); });
}

result<void> window_domain::show_imported(window_handle& handle, const exported_handle& imported)
{
    if (!imported.is_window || device_window_keys::instance().exports_with(imported.key.token)) {
        return {}; // a CPU finds a window of this process anyway
    }
    const auto copies = this->copies();
    if (!copies) {
        ucs_diag("%s: messages that UCP copies by the CPU are refused for imported windows: %s", _device_name.c_str(),
                 copies.error().message.c_str());
        return {};
    }
    UCXL_TRY(imported_windows::instance().add(imported, *handle.alias, **copies, _windows));
    handle.imported_address = imported.address;
    return {};
}

ucs_status_t window_domain::mem_attach(const void* exported_key, abi::mem_attach_params* params, uct_mem_h* memh)
{
    if (!is_exported_handle(exported_key)) {
        return domain_layer::mem_attach(exported_key, params, memh);
    }
    // UCP tries all domains that the handle may belong to, and logs it if none fits.
    constexpr auto name = "ucp_mem_map of exported memory";
    return guarded(name, [&] {
        const auto unpacked = unpack_exported(exported_key);
        const auto handle   = unpacked ? make_handle() : std::unexpected(unpacked.error());
        if (!handle) {
            ucs_debug("%s: %s", name, handle.error().message.c_str());
            return to_status(handle.error().code);
        }
        rollback undo([&] { handle_table::instance().give_back(*handle); });
        const auto alias = _aliases.take(unpacked->key);
        if (!alias) {
            ucs_debug("%s: %s", name, alias.error().message.c_str());
            return to_status(alias.error().code);
        }
        (*handle)->alias = *alias;
        (*handle)->lkey = (*handle)->rkey = (*alias)->key();
        if (const auto shown = show_imported(**handle, *unpacked); !shown) {
            ucs_debug("%s: %s", name, shown.error().message.c_str());
            _aliases.give_back(*alias);
            return to_status(shown.error().code);
        }
        undo.cancel();
        _aliases.expect(*unpacked);
        *memh = *handle;
        const std::lock_guard guard(_lock);
        show();
        return UCS_OK;
    });
}

bool window_domain::can_pack_element(uct_mem_h memh) const
{
    return !handle_table::instance().holds(memh);
}

} // namespace ucxl::mlx5
