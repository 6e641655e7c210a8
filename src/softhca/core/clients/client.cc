#include "client.h"

#include "softhca/core/arena/record_table.h"
#include "softhca/core/arena/recount.h"
#include "softhca/core/keys/translation_pool.h"
#include "softhca/core/queues/completion.h"

namespace ucxl::softhca
{

namespace
{

template <typename Record, std::size_t Count>
void retire_all_of(table<Record, Count>& records, client_id client)
{
    for_each_live(records, [&](std::uint32_t id, const Record& record) {
        if (record.owner.client == client) {
            retire(records, id);
        }
    });
}

// An alias of a destroyed key is cut off, because the next user of that index is another key.
void cut_aliases(arena& memory)
{
    for_each_live(memory.mkeys, [&](std::uint32_t, mkey_record& key) {
        if (key.backing == mkey_backing::alias && memory.mkeys.find(key.target_mkey) == nullptr) {
            key.target_mkey = 0;
        }
    });
}

void free_memic_of(memic_device& device, client_id client)
{
    for (ownership& owner : device.owner) {
        if (owner.life == life::live && owner.client == client) {
            detail::set_life(owner, life::free);
        }
    }
}

std::uint64_t keys_of(arena& memory, client_id client)
{
    std::uint64_t keys = 0;
    for_each_live(memory.mkeys, [&](std::uint32_t, const mkey_record& key) { keys += key.owner.client == client; });
    return keys;
}

// Objects are destroyed before those they refer to, so that no live object refers to a free one.
void retire_objects(arena& memory, client_id client)
{
    retire_all_of(memory.qps, client);
    retire_all_of(memory.srqs, client);
    retire_all_of(memory.cqs, client);
    retire_all_of(memory.mkeys, client);
    retire_all_of(memory.umems, client);
    retire_all_of(memory.uars, client);
    retire_all_of(memory.pds, client);
    retire_all_of(memory.flow_counters, client);
    retire_all_of(memory.channels, client);
    for (memic_device& device : used_devices(memory)) {
        free_memic_of(device, client);
    }
}

void derive(arena& memory)
{
    cut_aliases(memory);
    recount(memory);
    rebuild_translation_pool(memory);
}

} // namespace

client_id enter_client(arena& memory, std::int32_t process, std::uint64_t start_time)
{
    for (client_id id = 1; id < max_clients; ++id) {
        client_record& record = memory.clients[id];
        if (record.owner.life == life::live) {
            continue;
        }
        const std::uint32_t generation = record.generation + 1;
        record                         = client_record{};
        record.process                 = process;
        record.start_time              = start_time;
        record.generation              = generation;
        record.owner.client            = id;
        detail::set_life(record.owner, life::live);
        return id;
    }
    return 0;
}

void release_client(environment& device, client_id client)
{
    device.memory.counts.keys_left += keys_of(device.memory, client);
    retire_objects(device.memory, client);
    detail::set_life(device.memory.clients[client].owner, life::free);
    derive(device.memory);
}

unsigned release_dead_clients(environment& device)
{
    unsigned released = 0;
    for (client_id id = 1; id < max_clients; ++id) {
        if (id == device.self || device.memory.clients[id].owner.life != life::live || device.outside.alive(id)) {
            continue;
        }
        retire_objects(device.memory, id);
        detail::set_life(device.memory.clients[id].owner, life::free);
        ++device.memory.counts.clients_lost;
        ++released;
    }
    if (released != 0) {
        derive(device.memory);
    }
    return released;
}

void repair(environment& device)
{
    repair_completion(device);
    if (release_dead_clients(device) == 0) {
        derive(device.memory);
    }
}

} // namespace ucxl::softhca
