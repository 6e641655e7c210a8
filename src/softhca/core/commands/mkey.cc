// Memory keys: create, query, destroy.
#include "prm/mkey.h"

#include "call.h"
#include "softhca/core/arena/cost.h"
#include "softhca/core/arena/fault_plan.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/keys/translation_list.h"
#include "softhca/core/keys/translation_pool.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;
using prm::mkey_access_mode;
using create_in = prm::const_view<prm::create_mkey_in>;

constexpr std::uint32_t most_entries = 1U << log_max_klm_list;

bool ends(std::uint64_t first, std::uint64_t length)
{
    return length == 0 || length - 1 <= ~std::uint64_t{0} - first;
}

bool has_entries(mkey_access_mode mode)
{
    return mode == mkey_access_mode::klm || mode == mkey_access_mode::ksm;
}

bool writes(const mkey_record& key)
{
    return key.local_write || key.remote_write || key.remote_atomic;
}

// The fields with the same meaning for every kind of key.
mkey_record common_fields(prm::const_view<prm::mkc> context)
{
    mkey_record key;
    key.variant           = context.get(prm::mkc::mkey_7_0);
    key.mode              = prm::access_mode(context);
    key.free              = context.get(prm::mkc::free);
    key.umr_en            = context.get(prm::mkc::umr_en);
    key.local_read        = context.get(prm::mkc::lr);
    key.local_write       = context.get(prm::mkc::lw);
    key.remote_read       = context.get(prm::mkc::rr);
    key.remote_write      = context.get(prm::mkc::rw);
    key.remote_atomic     = context.get(prm::mkc::a);
    key.remote_invalidate = context.get(prm::mkc::en_rinval);
    key.length64          = context.get(prm::mkc::length64);
    key.relaxed_writes    = context.get(prm::mkc::relaxed_ordering_write);
    key.log_entity_size   = context.get(prm::mkc::log_entity_size);
    key.pd                = context.get(prm::mkc::pd);
    key.qpn               = context.get(prm::mkc::qpn);
    key.start_addr        = context.get(prm::mkc::start_addr);
    key.len               = context.get(prm::mkc::len);
    return key;
}

command_status check_common(command_call& call, create_in input, const mkey_record& key)
{
    const auto context = input.at(prm::create_mkey_in::memory_key);
    if (input.get(prm::create_mkey_in::input_mkey_index) != 0 || input.get(prm::create_mkey_in::cmd_on_behalf)) {
        return call.refuse(command_status::bad_parameter, "keys by name or for others are not modelled");
    }
    if (context.get(prm::mkc::bsf_en) || input.get(prm::create_mkey_in::bsf_octword_actual_size) != 0 ||
        context.get(prm::mkc::bsf_octword_size) != 0 || context.get(prm::mkc::crypto_en) != 0) {
        return call.refuse(command_status::bad_parameter, "signature and encryption are not modelled");
    }
    if (context.get(prm::mkc::alter_pd_to_vhca_id) || context.get(prm::mkc::crossed_side_mkey)) {
        return call.refuse(command_status::bad_parameter, "keys of other functions are made as alias objects");
    }
    if (own(call, call.memory().pds, key.pd) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such protection domain");
    }
    if (!ends(key.start_addr, key.len)) {
        return call.refuse(command_status::bad_parameter, "start_addr + len wraps");
    }
    return command_status::ok;
}

// A key for memory of the process: a range of a UMEM.
command_status take_umem(command_call& call, create_in input, mkey_record& key)
{
    if (!input.get(prm::create_mkey_in::mkey_umem_valid)) {
        return key.free ? command_status::ok
                        : call.refuse(command_status::bad_parameter, "page lists are not modelled: use a umem");
    }
    const std::uint32_t id = input.get(prm::create_mkey_in::mkey_umem_id);
    const auto range       = umem_range(call, id, input.get(prm::create_mkey_in::mkey_umem_offset), key.len);
    if (!range) {
        return call.refuse(command_status::bad_resource, "no such umem, or the key is larger");
    }
    if (key.len == 0 || key.length64) {
        return call.refuse(command_status::bad_parameter, "a key for memory needs its length");
    }
    if (writes(key) && !is_writable(call, id)) {
        return call.refuse(command_status::bad_parameter, "the umem is for reading only");
    }
    key.umem          = id;
    key.backing       = mkey_backing::process;
    key.direct_client = range->client;
    key.host_address  = range->address;
    return command_status::ok;
}

// The caller's allocation of device memory that holds the range. An empty range is one, too.
bool owns_memic(const command_call& call, std::uint64_t offset, std::uint64_t length)
{
    const memic_device& device = call.memory().memic[call.caller().device];
    if (offset >= memic_bytes || length > memic_bytes - offset) {
        return false;
    }
    std::size_t first = offset / memic_page_bytes;
    while (first > 0 && device.owner[first].life != life::live) {
        --first;
    }
    return device.owner[first].life == life::live && device.owner[first].client == call.device.self &&
           offset + length <= (first + device.length[first]) * memic_page_bytes;
}

// start_addr is the offset in device memory; the key itself is zero-based.
command_status take_memic(command_call& call, mkey_record& key)
{
    if (!owns_memic(call, key.start_addr, key.len) || key.length64) {
        return call.refuse(command_status::bad_parameter, "not within one allocation of device memory");
    }
    key.backing      = mkey_backing::memic;
    key.host_address = call.caller().device * memic_bytes + key.start_addr;
    key.start_addr   = 0;
    return command_status::ok;
}

// A key of the kernel: all addresses of the process.
command_status take_all_memory(command_call& call, mkey_record& key)
{
    if (call.uid != 0) {
        return call.refuse(command_status::bad_parameter, "physical addresses are the kernel's");
    }
    key.backing       = mkey_backing::all_memory;
    key.direct_client = call.device.self;
    key.host_address  = key.start_addr;
    return command_status::ok;
}

command_status check_entries(command_call& call, create_in input, const mkey_record& key)
{
    const std::uint32_t given = input.get(prm::create_mkey_in::translations_octword_actual_size);
    const std::uint32_t room  = input.at(prm::create_mkey_in::memory_key).get(prm::mkc::translations_octword_size);
    if (given > most_entries || room > most_entries) {
        return call.refuse(command_status::limit_exceeded, "more entries than log_max_klm_list_size");
    }
    if (call.input.size() - prm::create_mkey_in::size_bytes < given * sizeof(translation_entry)) {
        return call.refuse(command_status::bad_input_length, "fewer entries than translations_octword_actual_size");
    }
    if (given == 0 && !key.free) {
        return call.refuse(command_status::bad_parameter, "a key in use needs entries");
    }
    if (!key.umr_en && key.free) {
        return call.refuse(command_status::bad_parameter, "a free key that nothing can bind");
    }
    return command_status::ok;
}

// UCX: "FW requires indirect atomic MR address and length to be aligned to max supported atomic argument size"
// (ib_mlx5dv_md.c), and its pull request 8218: firmware refused such a key over one with relaxed order.
command_status check_atomic_ksm(command_call& call, std::span<const std::byte> behind, const mkey_record& key,
                                std::uint32_t entries)
{
    if (!key.remote_atomic || key.mode != mkey_access_mode::ksm || key.free) {
        return command_status::ok;
    }
    if (key.start_addr % max_atomic_bytes != 0 || key.len % max_atomic_bytes != 0) {
        return call.refuse(command_status::bad_parameter, "a KSM for atomics has to be aligned to the longest atomic");
    }
    for (std::uint32_t i = 0; i < entries; ++i) {
        const prm::const_view<prm::ksm> entry(behind.subspan(i * prm::ksm::size_bytes).first<prm::ksm::size_bytes>());
        const mkey_record* const below = call.memory().find_key(entry.get(prm::ksm::mkey));
        if (below == nullptr || below->free) {
            return call.refuse(command_status::bad_parameter, "a KSM for atomics over a key that is not bound");
        }
        if (below->relaxed_writes) {
            return call.refuse(command_status::bad_parameter, "a KSM for atomics over a key of relaxed order");
        }
    }
    return command_status::ok;
}

command_status take_memory(command_call& call, create_in input, mkey_record& key)
{
    switch (key.mode) {
    case mkey_access_mode::mtt:
        return take_umem(call, input, key);
    case mkey_access_mode::memic:
        return take_memic(call, key);
    case mkey_access_mode::physical_address:
        return take_all_memory(call, key);
    case mkey_access_mode::ksm:
        if (!call.memory().card.fixed_buffer_size) {
            return call.refuse(command_status::bad_parameter, "access mode: the device has no fixed_buffer_size");
        }
        return check_entries(call, input, key);
    case mkey_access_mode::klm:
        return check_entries(call, input, key);
    case mkey_access_mode::software_icm:
    case mkey_access_mode::crossing_vhca:
        break;
    }
    return call.refuse(command_status::bad_parameter, "access mode is not modelled");
}

// Allocates room for the entries and writes them. The key is not live yet, so a death in between leaves nothing.
bool take_entries(arena& memory, create_in input, std::span<const std::byte> behind, mkey_record& key)
{
    const std::uint32_t given = input.get(prm::create_mkey_in::translations_octword_actual_size);
    const std::uint32_t room  = input.at(prm::create_mkey_in::memory_key).get(prm::mkc::translations_octword_size);
    const std::uint32_t count = std::max(given, room);
    if (count == 0) {
        return true;
    }
    key.entries_first = allocate_translations(memory, count);
    if (key.entries_first == 0) {
        return false;
    }
    key.entries_room = count;
    if (given != 0 && !store_translations(memory, key, 0, behind.first(given * sizeof(translation_entry)))) {
        release_translations(memory, key.entries_first, key.entries_room);
        return false;
    }
    return true;
}

std::uint64_t creation_cost(const command_call& call, const mkey_record& key)
{
    const auto costs = static_cast<card_times>(call.memory().times);
    if (key.backing != mkey_backing::process) {
        return indirect_key_cost(costs);
    }
    return call.uid == 0 ? registration_cost(costs, key.len) : umem_key_cost(costs);
}

command_status create_mkey(command_call& call, create_in input, prm::view<prm::create_mkey_out> output)
{
    arena& memory   = call.memory();
    mkey_record key = common_fields(input.at(prm::create_mkey_in::memory_key));
    if (const auto status = check_common(call, input, key); status != command_status::ok) {
        return status;
    }
    if (const auto status = take_memory(call, input, key); status != command_status::ok) {
        return status;
    }
    const auto behind = call.input.subspan(prm::create_mkey_in::size_bytes);
    if (const auto status =
            check_atomic_ksm(call, behind, key, input.get(prm::create_mkey_in::translations_octword_actual_size));
        status != command_status::ok) {
        return status;
    }
    // [cap] mkc_order_write_after_write_ro_only: the order "must be set to RELAXED_ORDER". Newer UCXs do so.
    if (memory.card.relaxed_only && memory.card.needs_relaxed_keys && key.mode == mkey_access_mode::ksm && !key.free &&
        !key.relaxed_writes) {
        return call.refuse(command_status::bad_parameter, "a KSM without relaxed order, which all memory has here");
    }
    if (beyond_limit(memory, fault_kind::key_limit, memory.mkeys.live + 1)) {
        return call.refuse(command_status::limit_exceeded, "--fault");
    }
    const std::uint32_t index = find_room_for_key(call);
    if (index == 0) {
        return call.refuse(command_status::limit_exceeded, "all keys are taken");
    }
    if (has_entries(key.mode) && !take_entries(memory, input, behind, key)) {
        return call.refuse(command_status::no_resources, "no room for translation entries");
    }
    if (memory.card.relaxed_only && !has_entries(key.mode)) {
        key.relaxed_writes = true; // the kernel's driver sets it, because it has to
    }
    fresh(memory.mkeys, index) = key;
    hold(memory.pds, key.pd);
    hold(memory.umems, key.umem);
    publish_key(memory, index, call.owner());
    call.cost_ns = creation_cost(call, key);
    (void)output.set(prm::create_mkey_out::mkey_index, memory.mkeys.number_of(index));
    return command_status::ok;
}

command_status query_mkey(command_call& call, prm::const_view<prm::query_mkey_in> input,
                          prm::view<prm::query_mkey_out> output)
{
    const mkey_record* const key = own(call, call.memory().mkeys, input.get(prm::query_mkey_in::mkey_index));
    if (key == nullptr) {
        return call.refuse(command_status::bad_resource, "no such key");
    }
    const auto context = output.at(prm::query_mkey_out::memory_key);
    prm::set_access_mode(context, key->mode);
    context.put(prm::mkc::free, key->free);
    context.put(prm::mkc::umr_en, key->umr_en);
    context.put(prm::mkc::lr, key->local_read);
    context.put(prm::mkc::lw, key->local_write);
    context.put(prm::mkc::rr, key->remote_read);
    context.put(prm::mkc::rw, key->remote_write);
    context.put(prm::mkc::a, key->remote_atomic);
    context.put(prm::mkc::en_rinval, key->remote_invalidate);
    context.put(prm::mkc::length64, key->length64);
    context.put(prm::mkc::relaxed_ordering_write, key->relaxed_writes);
    context.put(prm::mkc::mkey_7_0, key->variant);
    context.put(prm::mkc::start_addr, key->start_addr);
    context.put(prm::mkc::len, key->len);
    context.put(prm::mkc::translations_octword_size, key->entries_room);
    (void)context.set(prm::mkc::log_entity_size, key->log_entity_size);
    (void)context.set(prm::mkc::pd, key->pd);
    (void)context.set(prm::mkc::qpn, key->qpn);
    return command_status::ok;
}

command_status destroy_mkey(command_call& call, prm::const_view<prm::destroy_mkey_in> input, prm::view<prm::any_output>)
{
    const std::uint32_t index = input.get(prm::destroy_mkey_in::mkey_index);
    mkey_record* const key    = own(call, call.memory().mkeys, index);
    if (key == nullptr || key->backing == mkey_backing::alias) {
        return call.refuse(command_status::bad_resource, "no such key");
    }
    const auto costs = static_cast<card_times>(call.memory().times);
    call.cost_ns     = key->backing == mkey_backing::process && call.uid == 0 ? deregistration_cost(costs, key->len)
                                                                              : key_end_cost(costs);
    retire_key(call.memory(), *key);
    return command_status::ok;
}

command_status query_special_contexts(command_call&, prm::const_view<prm::any_input>,
                                      prm::view<prm::query_special_contexts_out> output)
{
    output.put(prm::query_special_contexts_out::dump_fill_mkey, key_without_memory);
    return command_status::ok;
}

constexpr command_entry entries[] = {
    entry<prm::create_mkey_in, prm::create_mkey_out, create_mkey>(prm::command::create_mkey),
    entry<prm::query_mkey_in, prm::query_mkey_out, query_mkey>(prm::command::query_mkey),
    entry<prm::destroy_mkey_in, prm::any_output, destroy_mkey>(prm::command::destroy_mkey),
    entry<prm::any_input, prm::query_special_contexts_out, query_special_contexts>(
        prm::command::query_special_contexts),
};

} // namespace

void publish_key(arena& memory, std::uint32_t index, const ownership& owner)
{
    publish(memory.mkeys, index, owner);
    memory.counts.keys_live     = memory.mkeys.live;
    memory.counts.keys_live_max = std::max(memory.counts.keys_live_max, memory.counts.keys_live);
}

void retire_key(arena& memory, const mkey_record& retired)
{
    const mkey_record key = retired;
    const auto index      = static_cast<std::uint32_t>(&retired - memory.mkeys.records.data());
    const auto number     = memory.mkeys.number_of(index);
    retire(memory.mkeys, index);
    if (key.shared_with_vhca) {
        // An alias refers to this key, not to the next one with that index.
        for_each_live(memory.mkeys, [&](std::uint32_t, mkey_record& other) {
            if (other.backing == mkey_backing::alias && other.target_mkey == number) {
                other.target_mkey = 0;
            }
        });
    }
    release_translations(memory, key.entries_first, key.entries_room);
    let_go(memory.pds, key.pd);
    let_go(memory.umems, key.umem);
    memory.counts.keys_live = memory.mkeys.live;
}

command_status replace_region(command_call& call, std::uint32_t key)
{
    arena& memory           = call.memory();
    mkey_record* const kept = own(call, memory.mkeys, key >> 8);
    if (kept == nullptr || kept->variant != (key & 0xff) || kept->backing != mkey_backing::process) {
        return command_status::bad_resource;
    }
    const auto input = create_in::over(call.input);
    if (!input) {
        return command_status::bad_parameter;
    }
    mkey_record next = common_fields(input->at(prm::create_mkey_in::memory_key));
    if (const auto status = check_common(call, *input, next); status != command_status::ok) {
        return status;
    }
    if (const auto status = take_umem(call, *input, next); status != command_status::ok) {
        return status;
    }
    const mkey_record before = *kept;
    next.owner               = before.owner;
    next.variant             = before.variant;
    next.shared_with_vhca    = before.shared_with_vhca;
    next.access_key          = before.access_key;
    hold(memory.pds, next.pd);
    hold(memory.umems, next.umem);
    *kept = next;
    let_go(memory.pds, before.pd);
    let_go(memory.umems, before.umem);
    call.cost_ns = registration_cost(static_cast<card_times>(memory.times), next.len);
    return command_status::ok;
}

command_entries mkey_commands()
{
    return entries;
}

} // namespace ucxl::softhca
