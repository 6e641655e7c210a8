#include "recount.h"

#include "record_table.h"

namespace ucxl::softhca
{

namespace
{

template <typename Record, std::size_t Count>
void count_live(table<Record, Count>& records)
{
    records.live = 0;
    for_each_live(records, [&](std::uint32_t, Record&) { ++records.live; });
}

template <typename Record, std::size_t Count>
void forget_users(table<Record, Count>& records)
{
    for_each_live(records, [](std::uint32_t, Record& record) { record.users = 0; });
}

template <typename Record, std::size_t Count>
void use(table<Record, Count>& records, std::uint32_t id)
{
    if (Record* const used = records.find(id)) {
        ++used->users;
    }
}

void count_memic(memic_device& device)
{
    device.taken.fill(0);
    device.used_bytes = 0;
    for (std::size_t first = 0; first < device.owner.size(); ++first) {
        if (device.owner[first].life == life::live) {
            const std::uint32_t pages = device.length[first];
            std::fill_n(device.taken.begin() + static_cast<std::ptrdiff_t>(first), pages, std::uint8_t{1});
            device.used_bytes += pages * static_cast<std::uint32_t>(memic_page_bytes);
        }
    }
}

} // namespace

void recount(arena& memory)
{
    count_live(memory.channels);
    count_live(memory.flow_counters);
    count_live(memory.pds);
    count_live(memory.uars);
    count_live(memory.umems);
    count_live(memory.cqs);
    count_live(memory.srqs);
    count_live(memory.qps);
    count_live(memory.mkeys);
    forget_users(memory.pds);
    forget_users(memory.uars);
    forget_users(memory.umems);
    forget_users(memory.cqs);
    forget_users(memory.srqs);
    for_each_live(memory.cqs, [&](std::uint32_t, const cq_record& cq) {
        use(memory.umems, cq.umem);
        use(memory.umems, cq.doorbell_umem);
        use(memory.uars, cq.uar);
    });
    for_each_live(memory.srqs, [&](std::uint32_t, const srq_record& srq) {
        use(memory.umems, srq.umem);
        use(memory.umems, srq.doorbell_umem);
        use(memory.pds, srq.pd);
    });
    for_each_live(memory.qps, [&](std::uint32_t, const qp_record& qp) {
        use(memory.umems, qp.umem);
        use(memory.umems, qp.doorbell_umem);
        use(memory.uars, qp.uar);
        use(memory.pds, qp.pd);
        use(memory.cqs, qp.send_cq);
        use(memory.cqs, qp.receive_cq);
        use(memory.srqs, qp.srq);
    });
    for_each_live(memory.mkeys, [&](std::uint32_t, const mkey_record& key) {
        use(memory.umems, key.umem);
        use(memory.pds, key.pd);
    });
    memory.counts.keys_live  = memory.mkeys.live;
    memory.counts.memic_used = 0;
    for (memic_device& device : used_devices(memory)) {
        count_memic(device);
        memory.counts.memic_used += device.used_bytes;
    }
}

} // namespace ucxl::softhca
