#include "invariants.h"

#include <bit>
#include <format>
#include <map>
#include <vector>

namespace ucxl::softhca::test
{

namespace
{

class checker
{
public:
    explicit checker(arena& memory) : _memory(memory) {}

    std::string check();

private:
    template <typename Record, std::size_t Count>
    void check_table(const char* name, const table<Record, Count>& records);
    template <typename Record, std::size_t Count>
    void check_users(const char* name, const table<Record, Count>& records,
                     const std::map<std::uint32_t, unsigned>& users);
    template <typename Record, std::size_t Count>
    void refer(std::map<std::uint32_t, unsigned>& users, const char* name, const table<Record, Count>& records,
               std::uint32_t id, const ownership& by);
    void check_references();
    void check_translations();
    void check_aliases();
    void check_memic();

    template <typename... Values>
    void wrong(std::format_string<Values...> text, Values&&... values)
    {
        _text += std::format(text, std::forward<Values>(values)...) + "\n";
    }

    arena& _memory;
    std::string _text;
    std::map<std::uint32_t, unsigned> _pd_users, _uar_users, _umem_users, _cq_users, _srq_users;
};

template <typename Record, std::size_t Count>
void checker::check_table(const char* name, const table<Record, Count>& records)
{
    std::uint32_t live = 0;
    for (std::uint32_t id = 0; id < Count && id < records.end; ++id) {
        const ownership& owner = records.records[id].owner;
        if (owner.life == life::free) {
            continue;
        }
        ++live;
        if (id == 0 || owner.client == 0 || owner.client >= max_clients || owner.function >= _memory.functions ||
            _memory.clients[owner.client].owner.life != life::live) {
            wrong("{} {}: owner is nobody (client {}, function {})", name, id, owner.client, owner.function);
        }
    }
    if (live != records.live) {
        wrong("{}: {} live, {} counted", name, live, records.live);
    }
}

template <typename Record, std::size_t Count>
void checker::check_users(const char* name, const table<Record, Count>& records,
                          const std::map<std::uint32_t, unsigned>& users)
{
    for (std::uint32_t id = 1; id < Count && id < records.end; ++id) {
        const auto found       = users.find(id);
        const unsigned counted = found == users.end() ? 0 : found->second;
        if (records.records[id].owner.life == life::live && records.records[id].users != counted) {
            wrong("{} {}: {} users, {} counted", name, id, counted, records.records[id].users);
        }
    }
}

template <typename Record, std::size_t Count>
void checker::refer(std::map<std::uint32_t, unsigned>& users, const char* name, const table<Record, Count>& records,
                    std::uint32_t id, const ownership& by)
{
    if (id == 0) {
        return;
    }
    ++users[id];
    if (id >= Count || records.records[id].owner.life != life::live) {
        wrong("{} {} is used and not there", name, id);
    } else if (records.records[id].owner.client != by.client) {
        wrong("{} {} is used by another process", name, id);
    }
}

template <typename Record, std::size_t Count, typename Action>
void each(const table<Record, Count>& records, Action&& action)
{
    for (std::uint32_t id = 1; id < Count && id < records.end; ++id) {
        if (records.records[id].owner.life == life::live) {
            action(id, records.records[id]);
        }
    }
}

void checker::check_references()
{
    each(_memory.cqs, [&](std::uint32_t, const cq_record& cq) {
        refer(_umem_users, "umem", _memory.umems, cq.umem, cq.owner);
        refer(_umem_users, "umem", _memory.umems, cq.doorbell_umem, cq.owner);
        refer(_uar_users, "uar", _memory.uars, cq.uar, cq.owner);
    });
    each(_memory.srqs, [&](std::uint32_t, const srq_record& srq) {
        refer(_umem_users, "umem", _memory.umems, srq.umem, srq.owner);
        refer(_umem_users, "umem", _memory.umems, srq.doorbell_umem, srq.owner);
        refer(_pd_users, "pd", _memory.pds, srq.pd, srq.owner);
    });
    each(_memory.qps, [&](std::uint32_t, const qp_record& qp) {
        refer(_umem_users, "umem", _memory.umems, qp.umem, qp.owner);
        refer(_umem_users, "umem", _memory.umems, qp.doorbell_umem, qp.owner);
        refer(_uar_users, "uar", _memory.uars, qp.uar, qp.owner);
        refer(_pd_users, "pd", _memory.pds, qp.pd, qp.owner);
        refer(_cq_users, "cq", _memory.cqs, qp.send_cq, qp.owner);
        refer(_cq_users, "cq", _memory.cqs, qp.receive_cq, qp.owner);
        refer(_srq_users, "srq", _memory.srqs, qp.srq, qp.owner);
    });
    each(_memory.mkeys, [&](std::uint32_t, const mkey_record& key) {
        refer(_umem_users, "umem", _memory.umems, key.umem, key.owner);
        refer(_pd_users, "pd", _memory.pds, key.pd, key.owner);
    });
}

// Runs of different keys do not overlap, and all are inside the table.
void checker::check_translations()
{
    std::map<std::uint32_t, std::uint32_t> runs; // first: end
    each(_memory.mkeys, [&](std::uint32_t id, const mkey_record& key) {
        if (key.entries_used > key.entries_room) {
            wrong("key {}: {} entries in room for {}", id, key.entries_used, key.entries_room);
        }
        if (key.entries_room == 0) {
            return;
        }
        const std::uint32_t end = key.entries_first + key.entries_room;
        if (key.entries_first == 0 || end > max_translation_entries || !runs.emplace(key.entries_first, end).second) {
            wrong("key {}: entries from {} on", id, key.entries_first);
        }
    });
    std::uint32_t reached = 0;
    for (const auto& [first, end] : runs) {
        if (first < reached) {
            wrong("entry {} is of two keys", first);
        }
        reached = end;
    }
}

void checker::check_aliases()
{
    each(_memory.mkeys, [&](std::uint32_t id, const mkey_record& key) {
        if (key.backing == mkey_backing::alias && key.target_mkey != 0 &&
            _memory.mkeys.find(key.target_mkey) == nullptr) {
            wrong("key {}: alias of nothing", id);
        }
    });
}

void checker::check_memic()
{
    std::uint64_t used = 0;
    for (const memic_device& device : used_devices(_memory)) {
        std::vector<bool> taken(device.taken.size());
        std::uint64_t bytes = 0;
        for (std::size_t first = 0; first < taken.size(); ++first) {
            if (device.owner[first].life == life::free) {
                continue;
            }
            bytes += device.length[first] * memic_page_bytes;
            for (std::size_t i = first; i < first + device.length[first]; ++i) {
                if (i >= taken.size() || taken[i]) {
                    wrong("device memory: page {} twice or outside", i);
                    break;
                }
                taken[i] = true;
            }
        }
        for (std::size_t i = 0; i < taken.size(); ++i) {
            if (taken[i] != (device.taken[i] != 0)) {
                wrong("device memory: page {} marked {}", i, device.taken[i]);
                break;
            }
        }
        if (bytes != device.used_bytes) {
            wrong("device memory: {} bytes used, {} counted", bytes, device.used_bytes);
        }
        used += bytes;
    }
    if (used != _memory.counts.memic_used) {
        wrong("device memory: {} bytes used, {} in the statistics", used, _memory.counts.memic_used);
    }
}

std::string checker::check()
{
    check_table("pd", _memory.pds);
    check_table("uar", _memory.uars);
    check_table("umem", _memory.umems);
    check_table("cq", _memory.cqs);
    check_table("srq", _memory.srqs);
    check_table("qp", _memory.qps);
    check_table("key", _memory.mkeys);
    check_references();
    check_users("pd", _memory.pds, _pd_users);
    check_users("uar", _memory.uars, _uar_users);
    check_users("umem", _memory.umems, _umem_users);
    check_users("cq", _memory.cqs, _cq_users);
    check_users("srq", _memory.srqs, _srq_users);
    check_translations();
    check_aliases();
    check_memic();
    if (_memory.counts.keys_live != _memory.mkeys.live) {
        wrong("keys: {} live, {} in the statistics", _memory.mkeys.live, _memory.counts.keys_live);
    }
    return _text;
}

} // namespace

std::string broken_invariants(arena& memory)
{
    return checker(memory).check();
}

std::string what_is_left(arena& memory)
{
    std::string text = broken_invariants(memory);
    for (const auto& [name, live] : std::map<std::string, std::uint32_t>{{"pds", memory.pds.live},
                                                                         {"uars", memory.uars.live},
                                                                         {"umems", memory.umems.live},
                                                                         {"cqs", memory.cqs.live},
                                                                         {"srqs", memory.srqs.live},
                                                                         {"qps", memory.qps.live},
                                                                         {"keys", memory.mkeys.live}}) {
        if (live != 0) {
            text += std::format("{} {} are left\n", live, name);
        }
    }
    if (memory.counts.memic_used != 0) {
        text += "device memory is left\n";
    }
    return text;
}

} // namespace ucxl::softhca::test
