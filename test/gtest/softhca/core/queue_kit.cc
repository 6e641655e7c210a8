#include "queue_kit.h"

#include <algorithm>
#include <cstring>

#include "key_maker.h"
#include "prm/bits.h"
#include "softhca/core/arena/record_table.h"
#include "softhca/core/queues/completion.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::detail::load_big_endian;
using prm::detail::store_big_endian;

process_memory memory_of(const test_process& process, std::span<const std::byte> bytes)
{
    return {process.id(), address_of(bytes), bytes.size()};
}

constexpr std::byte invalid_entry{0xf0};

void write_segments(std::span<std::byte> entry, std::span<const receive_segment> segments)
{
    const auto put = [&](std::size_t at, const receive_segment& one) {
        store_big_endian(entry.data() + at * 16, one.length);
        store_big_endian(entry.data() + at * 16 + 4, one.key);
        store_big_endian(entry.data() + at * 16 + 8, one.at);
    };
    for (std::size_t i = 0; i < segments.size(); i++) {
        put(i, segments[i]);
    }
    if (segments.size() < entry.size() / 16) {
        put(segments.size(), {.key = 0x100});
    }
}

} // namespace

prm::cqe_syndrome polled::syndrome() const
{
    return prm::const_view<prm::cqe64_error>(bytes.bytes).get(prm::cqe64_error::syndrome);
}

std::optional<polled> made_cq::poll()
{
    const std::size_t size  = record().entry_size;
    const std::uint32_t all = 1U << record().log_size;
    std::byte* const entry  = buffer.data() + (consumer & (all - 1)) * size;
    const auto last         = std::to_integer<unsigned>(entry[size - 1]);
    if (last >> 4 == 15 || (last & 1) != ((consumer & all) != 0 ? 1U : 0U)) {
        return std::nullopt;
    }
    polled found;
    std::memcpy(found.bytes.bytes.data(), entry + size - 64, 64);
    std::memcpy(found.front.data(), entry, 64);
    consumer++;
    if (updates_consumer) {
        store_big_endian(doorbell.data(), consumer & 0xffffff);
    }
    return found;
}

std::vector<polled> made_cq::poll_all()
{
    std::vector<polled> all;
    while (const auto one = poll()) {
        all.push_back(*one);
    }
    return all;
}

void made_cq::arm(std::uint8_t sequence, cq_arm kind)
{
    environment device{*memory, *process, process->id()};
    arm_completion_queue(device, number, sequence, kind, consumer & 0xffffff);
}

void made_srq::post(std::span<const receive_segment> segments)
{
    const std::size_t stride = std::size_t{1} << record().log_stride;
    const std::uint16_t mask = static_cast<std::uint16_t>((1U << record().log_size) - 1);
    const std::uint16_t slot = record().linked ? tail : producer & mask;
    const std::span entry    = buffer.subspan(slot * stride, stride);
    const std::size_t header = record().headed ? 16 : 0;
    tail                     = load_big_endian<std::uint16_t>(entry.data() + 2);
    producer++;
    write_segments(entry.subspan(header), segments);
    store_big_endian(doorbell.data(), std::uint32_t{producer});
}

void made_srq::give_back(std::uint16_t index)
{
    // The list links all entries. This one is appended after the last one before `tail`.
    const std::size_t stride = std::size_t{1} << record().log_stride;
    const std::size_t count  = std::size_t{1} << record().log_size;
    std::uint16_t last       = tail;
    for (std::size_t i = 0; i < count; i++) {
        const auto next = load_big_endian<std::uint16_t>(buffer.data() + last * stride + 2);
        if (next == last) {
            break;
        }
        last = next;
    }
    store_big_endian(buffer.data() + last * stride + 2, index);
    store_big_endian(buffer.data() + index * stride + 2, index);
}

std::uint16_t made_qp::post(std::span<const std::byte> wqe)
{
    const std::uint16_t index = produced;
    const std::size_t blocks  = std::max<std::size_t>(1, (wqe.size() + 63) / 64);
    const std::span ring      = buffer.subspan(record().send.offset, std::size_t{64} << record().send.log_size);
    for (std::size_t i = 0; i < wqe.size(); i++) {
        ring[(std::size_t{index} * 64 + i) % ring.size()] = wqe[i];
    }
    std::byte* const head = ring.data() + std::size_t{index} * 64 % ring.size();
    store_big_endian(head + 1, index);
    produced = static_cast<std::uint16_t>(produced + blocks);
    store_big_endian(doorbell.data() + 4, std::uint32_t{produced});
    return index;
}

std::uint16_t made_qp::post_receive(std::span<const receive_segment> segments)
{
    const std::uint16_t index = receives_produced++;
    const std::size_t stride  = std::size_t{1} << record().receive.log_stride;
    const std::size_t slot    = index & ((1U << record().receive.log_size) - 1);
    write_segments(buffer.subspan(record().receive.offset + slot * stride, stride), segments);
    store_big_endian(doorbell.data(), std::uint32_t{receives_produced});
    return index;
}

bool made_qp::run(unsigned budget)
{
    environment own = device();
    return run_send_queue(own, number, budget);
}

bool made_qp::flush()
{
    environment own = device();
    return flush_queue_pair(own, number);
}

void made_qp::scatter(prm::scatter_to_cqe requests, prm::scatter_to_cqe responses)
{
    const prm::view<prm::qpc> context(std::as_writable_bytes(std::span(record().context)));
    (void)context.set(prm::qpc::cs_req, requests);
    (void)context.set(prm::qpc::cs_res, responses);
}

made_cq queue_kit::completion_queue(test_process& process, std::uint8_t log_size, std::uint8_t entry_size)
{
    made_cq made{.memory = &_memory, .process = &process};
    made.buffer   = process.allocate(std::size_t{entry_size} << log_size);
    made.doorbell = process.allocate(8);
    for (std::size_t at = entry_size - 1U; at < made.buffer.size(); at += entry_size) {
        made.buffer[at] = invalid_entry;
    }
    made.number       = find_free(_memory.cqs);
    cq_record& record = fresh(_memory.cqs, made.number);
    record.buffer     = memory_of(process, made.buffer);
    record.doorbell   = memory_of(process, made.doorbell);
    record.log_size   = log_size;
    record.entry_size = entry_size;

    record.completion_events = {.channel = 100, .value = made.number};
    record.error_events      = {.channel = 101, .value = made.number};
    publish(_memory.cqs, made.number, {.client = process.id()});
    return made;
}

made_srq queue_kit::shared_receive_queue(test_process& process, std::uint8_t log_size, bool linked)
{
    constexpr std::uint8_t log_stride = 6;
    made_srq made{.memory = &_memory};
    made.buffer   = process.allocate(std::size_t{1} << (log_stride + log_size));
    made.doorbell = process.allocate(8);
    for (std::uint32_t i = 0; i < 1U << log_size; i++) {
        const std::uint32_t next = std::min<std::uint32_t>(i + 1, (1U << log_size) - 1);
        store_big_endian(made.buffer.data() + (i << log_stride) + 2, static_cast<std::uint16_t>(next));
    }
    made.number        = find_free(_memory.srqs);
    srq_record& record = fresh(_memory.srqs, made.number);
    record.buffer      = memory_of(process, made.buffer);
    record.doorbell    = memory_of(process, made.doorbell);
    record.log_size    = log_size;
    record.log_stride  = log_stride;
    record.linked      = linked;
    record.pd          = 7;
    record.events      = {.channel = 102, .value = made.number};
    publish(_memory.srqs, made.number, {.client = process.id()});
    return made;
}

made_qp queue_kit::queue_pair(test_process& process, const qp_options& options)
{
    made_qp made{.memory = &_memory, .process = &process};
    const std::size_t receive_bytes = std::size_t{1} << (options.log_receives + options.log_stride);
    made.buffer                     = process.allocate(receive_bytes + (std::size_t{64} << options.log_sends));
    made.doorbell                   = process.allocate(8);
    made.number                     = find_free(_memory.qps);
    qp_record& record               = fresh(_memory.qps, made.number);
    record.state                    = prm::qp_state::rts;
    record.service                  = options.service;
    record.buffer                   = memory_of(process, made.buffer);
    record.doorbell                 = memory_of(process, made.doorbell);
    record.pd                       = options.pd;
    record.send_cq                  = options.send_cq->number;
    record.receive_cq               = options.receive_cq->number;
    record.srq                      = options.srq == nullptr ? 0 : options.srq->number;
    record.user_index               = 0xabc000 + made.number;
    record.qkey                     = 0x11111111;
    record.send.present             = true;
    record.send.log_size            = options.log_sends;
    record.send.offset              = receive_bytes;
    record.receive.present          = options.srq == nullptr;
    record.receive.log_size         = options.log_receives;
    record.receive.log_stride       = options.log_stride;
    record.path.mtu                 = 3;
    record.retry_count              = 3;
    record.rnr_retry                = 3;
    record.min_rnr_timer            = 12;
    record.ack_timeout              = 14;
    record.remote_read              = true;
    record.remote_write             = true;
    record.remote_atomic            = true;
    record.events                   = {.channel = 103, .value = made.number};
    publish(_memory.qps, made.number, {.client = process.id(), .function = options.function});
    return made;
}

made_target queue_kit::target(test_process& process, const made_cq& cq, const made_srq& srq, std::uint64_t access_key,
                              function_id function)
{
    made_target made{.memory = &_memory, .number = find_free(_memory.qps)};
    qp_record& record    = fresh(_memory.qps, made.number);
    record.state         = prm::qp_state::rtr;
    record.service       = prm::qp_service::dci;
    record.pd            = 7;
    record.receive_cq    = cq.number;
    record.srq           = srq.number;
    record.user_index    = 0xdc7000 + made.number;
    record.min_rnr_timer = 14;
    record.remote_read   = true;
    record.remote_write  = true;
    record.remote_atomic = true;
    record.dc.target     = true;
    record.dc.access_key = access_key;
    record.events        = {.channel = 103, .value = made.number};

    record.communication_told = true;
    publish(_memory.qps, made.number, {.client = process.id(), .function = function});
    return made;
}

void queue_kit::connect(made_qp& a, made_qp& b)
{
    a.record().path.remote_qpn = b.number;
    a.record().path.remote_lid = b.lid();
    b.record().path.remote_qpn = a.number;
    b.record().path.remote_lid = a.lid();
    a.record().send.psn        = 0xfffffe; // wraps soon
    b.record().expected_psn    = 0xfffffe;
    b.record().send.psn        = 17;
    a.record().expected_psn    = 17;
}

} // namespace ucxl::softhca::test
