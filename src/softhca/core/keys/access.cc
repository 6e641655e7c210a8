#include "access.h"

#include <algorithm>
#include <span>

#include "prm/umr.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/arena/fault_plan.h"
#include "softhca/core/arena/limits.h"

namespace ucxl::softhca
{

namespace
{

constexpr right local_of(right needed)
{
    return needed == right::local_read || needed == right::remote_read ? right::local_read : right::local_write;
}

bool grants(const mkey_record& key, right needed)
{
    switch (needed) {
    case right::local_read:
        return key.local_read;
    case right::local_write:
        return key.local_write;
    case right::remote_read:
        return key.remote_read;
    case right::remote_write:
        return key.remote_write;
    case right::remote_atomic:
        return key.remote_atomic;
    }
    return false;
}

bool in_bounds(const mkey_record& key, std::uint64_t address, std::uint64_t length)
{
    if (address < key.start_addr || length - 1 > ~std::uint64_t{0} - address) {
        return false;
    }
    const std::uint64_t offset = address - key.start_addr;
    return key.length64 || (offset <= key.len && length <= key.len - offset);
}

// The checks of a key that do not depend on its use.
access_fault usable(const mkey_record& key, const key_user& user)
{
    if (key.free || key.backing == mkey_backing::none) {
        return access_fault::not_bound;
    }
    if (key.pd != user.pd) {
        return access_fault::wrong_pd;
    }
    if (key.qpn != prm::any_qpn && key.qpn != user.qpn) {
        return access_fault::wrong_qp;
    }
    return access_fault::none;
}

// A key that was found, and the user with whose rights its memory is accessed.
struct opened_key {
    const mkey_record* key = nullptr;
    key_user user{};
    access_fault fault = access_fault::none;
    bool by_alias      = false;
};

// Resolves an alias to its target.
opened_key open_target(arena& memory, const mkey_record& alias, const key_user& user)
{
    const mkey_record* const target = memory.mkeys.find(alias.target_mkey);
    if (target == nullptr) {
        return {.fault = access_fault::no_such_key};
    }
    const function_id function = target->owner.function;
    if (function >= max_functions || memory.function_table[function].vhca_id != alias.target_vhca ||
        !target->shared_with_vhca || target->access_key != alias.access_key || is_dead(memory, target->owner)) {
        return {.fault = access_fault::wrong_vhca};
    }
    if (target->backing == mkey_backing::alias) {
        return {.fault = access_fault::broken_entry};
    }
    const key_user owner{function, target->pd, user.qpn};
    return {target, owner, usable(*target, owner), true};
}

opened_key open_key(arena& memory, const key_user& user, std::uint32_t key)
{
    const mkey_record* const found = memory.find_key(key);
    if (found == nullptr || found->owner.function != user.function) {
        return {.fault = access_fault::no_such_key};
    }
    const access_fault fault = usable(*found, user);
    if (fault == access_fault::none && found->backing == mkey_backing::alias) {
        return open_target(memory, *found, user);
    }
    return {found, user, fault};
}

access_fault check_use(const mkey_record& key, std::uint64_t address, std::uint64_t length, right needed)
{
    if (!grants(key, needed)) {
        return access_fault::forbidden;
    }
    return in_bounds(key, address, length) ? access_fault::none : access_fault::outside;
}

bool is_direct(const mkey_record& key)
{
    return key.backing == mkey_backing::process || key.backing == mkey_backing::memic ||
           key.backing == mkey_backing::all_memory;
}

// The pieces of the key without memory. What is written there is never read.
constexpr std::size_t nothing_bytes = 1U << 16;
constexpr std::array<std::byte, nothing_bytes> zeros{};
constinit std::array<std::byte, nothing_bytes> sink{};

piece nothing(right needed)
{
    const std::byte* const bytes = needed == right::local_write ? sink.data() : zeros.data();
    return {space::engine, 0, reinterpret_cast<std::uintptr_t>(bytes), nothing_bytes};
}

// A piece of a direct key; `address` and `length` are within its bounds.
std::optional<piece> memory_behind(arena& memory, const mkey_record& key, std::uint64_t address, std::uint64_t length)
{
    const std::uint64_t place = key.host_address + (address - key.start_addr);
    if (place < key.host_address || length - 1 > ~std::uint64_t{0} - place) {
        return std::nullopt;
    }
    if (key.backing != mkey_backing::memic) {
        return piece{space::process, key.direct_client, place, length};
    }
    std::byte* const bytes = memic_at(memory, place, length);
    if (bytes == nullptr) {
        return std::nullopt;
    }
    return piece{space::engine, 0, reinterpret_cast<std::uintptr_t>(bytes), length};
}

} // namespace

key_walk::entered key_walk::refuse(access_fault why)
{
    _fault = why;
    _depth = 0;
    return entered::refused;
}

key_walk::entered key_walk::enter_nothing(std::uint64_t length, right needed, piece& found)
{
    if (needed != right::local_read && needed != right::local_write) {
        return refuse(access_fault::no_such_key);
    }
    _nothing     = nothing(needed);
    found        = _nothing;
    found.length = std::min(length, _nothing.length);
    _left        = length - found.length;
    return entered::memory;
}

key_walk::entered key_walk::enter(const key_user& user, const range& wanted, right needed, piece& found)
{
    if (wanted.key == key_without_memory) {
        return enter_nothing(wanted.length, needed, found);
    }
    const opened_key opened = open_key(_device.memory, user, wanted.key);
    if (opened.fault != access_fault::none) {
        return refuse(opened.fault);
    }
    const mkey_record& key = *opened.key;
    if (const access_fault fault = check_use(key, wanted.address, wanted.length, needed); fault != access_fault::none) {
        return refuse(fault);
    }
    if (!is_direct(key)) {
        return descend(key, opened.user, wanted.address - key.start_addr, wanted.length, opened.by_alias);
    }
    const auto memory = memory_behind(_device.memory, key, wanted.address, wanted.length);
    if (!memory) {
        return refuse(access_fault::outside);
    }
    found = *memory;
    return entered::memory;
}

// An alias is none, unless the card was told to count it.
std::size_t key_walk::levels_taken() const
{
    const auto inside = std::span(_levels).first(_depth);
    return !_device.memory.card.counts_aliases
               ? _depth
               : _depth + static_cast<std::size_t>(std::ranges::count_if(inside, &level::by_alias));
}

key_walk::entered key_walk::descend(const mkey_record& key, const key_user& user, std::uint64_t offset,
                                    std::uint64_t length, bool by_alias)
{
    const std::size_t counted = by_alias && _device.memory.card.counts_aliases ? 1 : 0;
    if (levels_taken() + counted >= _device.memory.card.indirection) {
        return refuse(access_fault::too_deep);
    }
    if (_depth != 0 && is_refused_below(key)) {
        return refuse(access_fault::forbidden);
    }
    level& next = _levels[_depth++];
    next        = {&key, user, length, offset, 0, 0, by_alias};
    if (key.backing != mkey_backing::repeat) {
        return entered::indirect;
    }
    const std::uint64_t turn_bytes = _device.memory.translations.ends[key.entries_first];
    const std::uint32_t turns =
        prm::const_view<prm::repeat_block_header>(_device.memory.translations.entries[key.entries_first])
            .get(prm::repeat_block_header::repeat_count);
    if (turn_bytes == 0 || offset / turn_bytes >= turns) {
        return refuse(access_fault::broken_entry);
    }
    next.turn   = static_cast<std::uint32_t>(offset / turn_bytes);
    next.offset = offset % turn_bytes;
    return entered::indirect;
}

bool key_walk::next(piece& found)
{
    if (!_begun) {
        _begun = true;
        if (_root.wanted.length == 0) {
            return false;
        }
        if (enter(_root.user, _root.wanted, _needed, found) == entered::memory) {
            return true;
        }
    }
    if (_left != 0) {
        found        = _nothing;
        found.length = std::min(_left, _nothing.length);
        _left -= found.length;
        return true;
    }
    while (_depth != 0) {
        level& top = _levels[_depth - 1];
        if (top.left == 0) {
            _depth--;
            continue;
        }
        range wanted;
        if (!step(top, wanted)) {
            refuse(access_fault::broken_entry);
            return false;
        }
        if (enter(top.user, wanted, right_below(), found) == entered::memory) {
            return true;
        }
    }
    return false;
}

// Of the keys inside a key.
right key_walk::right_below() const
{
    const bool by_local = _device.memory.card.imaicl && !refuses(_device.memory, refusable::local_nested) &&
                          !(_depth > 1 && refuses(_device.memory, refusable::deep_local_nested));
    return by_local ? local_of(_needed) : _needed;
}

// A key inside a key.
bool key_walk::is_refused_below(const mkey_record& key) const
{
    return (key.backing == mkey_backing::repeat && refuses(_device.memory, refusable::nested_repeat_block)) ||
           (_needed == right::remote_atomic && refuses(_device.memory, refusable::nested_atomic));
}

bool key_walk::step(level& current, range& wanted)
{
    switch (current.key->backing) {
    case mkey_backing::klm:
        return step_klm(current, wanted);
    case mkey_backing::ksm:
        return step_ksm(current, wanted);
    case mkey_backing::repeat:
        return step_repeat(current, wanted);
    case mkey_backing::none:
    case mkey_backing::process:
    case mkey_backing::memic:
    case mkey_backing::alias:
    case mkey_backing::all_memory:
        break;
    }
    return false;
}

namespace
{

// Finds the first entry, from `entry` on, that ends after `offset`; skips a run of empty entries at once. False when
// there is none.
bool seek(std::span<const std::uint64_t> ends, std::uint32_t& entry, std::uint64_t offset)
{
    if (entry < ends.size() && ends[entry] <= offset) {
        entry++;
    }
    if (entry < ends.size() && ends[entry] <= offset) {
        entry = static_cast<std::uint32_t>(std::ranges::upper_bound(ends.subspan(entry), offset) - ends.begin());
    }
    return entry < ends.size();
}

bool add(std::uint64_t& address, std::uint64_t distance)
{
    return !__builtin_add_overflow(address, distance, &address);
}

} // namespace

bool key_walk::step_klm(level& current, range& wanted)
{
    const translation_table& table = _device.memory.translations;
    const auto ends = std::span(table.ends).subspan(current.key->entries_first, current.key->entries_used);
    if (!seek(ends, current.entry, current.offset)) {
        return false;
    }
    const std::uint64_t begin = current.entry == 0 ? 0 : ends[current.entry - 1];
    const prm::const_view<prm::klm> entry(table.entries[current.key->entries_first + current.entry]);
    wanted                     = {entry.get(prm::klm::mkey), entry.get(prm::klm::address),
                                  std::min(current.left, ends[current.entry] - current.offset)};
    const std::uint64_t within = current.offset - begin;
    current.offset += wanted.length;
    current.left -= wanted.length;
    return add(wanted.address, within);
}

bool key_walk::step_ksm(level& current, range& wanted)
{
    const std::uint64_t size   = std::uint64_t{1} << current.key->log_entity_size;
    const std::uint64_t index  = current.offset >> current.key->log_entity_size;
    const std::uint64_t within = current.offset & (size - 1);
    if (index >= current.key->entries_used) {
        return false;
    }
    const translation_table& table = _device.memory.translations;
    const prm::const_view<prm::ksm> entry(table.entries[current.key->entries_first + index]);
    wanted = {entry.get(prm::ksm::mkey), entry.get(prm::ksm::address), std::min(current.left, size - within)};
    current.offset += wanted.length;
    current.left -= wanted.length;
    return add(wanted.address, within);
}

bool key_walk::step_repeat(level& current, range& wanted)
{
    const translation_table& table = _device.memory.translations;
    const std::uint32_t first      = current.key->entries_first;
    const prm::const_view<prm::repeat_block_header> header(table.entries[first]);
    if (current.offset == table.ends[first]) {
        current.offset = 0;
        current.entry  = 0;
        current.turn++;
    }
    const auto ends = std::span(table.ends).subspan(first + 1, header.get(prm::repeat_block_header::num_ent));
    if (current.turn >= header.get(prm::repeat_block_header::repeat_count) ||
        !seek(ends, current.entry, current.offset)) {
        return false;
    }
    const std::uint64_t begin = current.entry == 0 ? 0 : ends[current.entry - 1];
    const prm::const_view<prm::repeat_block_entry> entry(table.entries[first + 1 + current.entry]);
    wanted                      = {entry.get(prm::repeat_block_entry::mkey), entry.get(prm::repeat_block_entry::va),
                                   std::min(current.left, ends[current.entry] - current.offset)};
    const std::uint64_t advance = std::uint64_t{current.turn} * entry.get(prm::repeat_block_entry::stride);
    const std::uint64_t within  = current.offset - begin;
    current.offset += wanted.length;
    current.left -= wanted.length;
    return add(wanted.address, advance) && add(wanted.address, within);
}

std::optional<piece> single_piece(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address,
                                  std::uint64_t length, right needed)
{
    if (length == 0) {
        return std::nullopt;
    }
    const opened_key opened = open_key(device.memory, user, key);
    if (opened.fault != access_fault::none || !is_direct(*opened.key) ||
        check_use(*opened.key, address, length, needed) != access_fault::none) {
        return std::nullopt;
    }
    return memory_behind(device.memory, *opened.key, address, length);
}

access_fault check_access(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address,
                          std::uint64_t length, right needed, std::uint64_t most_pieces)
{
    key_walk walk(device, user, key, address, length, needed);
    piece ignored;
    while (most_pieces != 0 && walk.next(ignored)) {
        most_pieces--;
    }
    return walk.fault();
}

} // namespace ucxl::softhca
