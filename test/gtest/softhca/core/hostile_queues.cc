#include "hostile_queues.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>

#include "prm/bits.h"
#include "prm/mkey.h"
#include "prm/qp.h"
#include "prm/umr.h"
#include "softhca/core/arena/record_table.h"
#include "softhca/core/fabric.h"
#include "softhca/core/queues/completion.h"
#include "softhca/core/queues/queue_work.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::detail::store_big_endian;

constexpr client_id first_process  = 1;
constexpr client_id second_process = 2;
constexpr std::uint8_t log_blocks  = 3;
constexpr std::size_t data_bytes   = 1024;
constexpr std::uint8_t longest     = 14; // log2 of the bytes of a message
constexpr std::uint64_t access_key = 0x1122334455667788;

process_memory memory_of(client_id client, std::span<const std::byte> bytes)
{
    return {client, address_of(bytes), bytes.size()};
}

} // namespace

hostile_queues::hostile_queues()
{
    void* const mapped =
        mmap(nullptr, sizeof(arena), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        throw std::bad_alloc();
    }
    _memory = static_cast<arena*>(mapped);
}

hostile_queues::~hostile_queues()
{
    munmap(_memory, sizeof(arena));
}

void hostile_queues::build()
{
    madvise(_memory, sizeof(arena), MADV_DONTNEED);
    (void)fabric::format({reinterpret_cast<std::byte*>(_memory), sizeof(arena)}, {.functions_per_device = 2});
    _host = std::make_unique<watched_memory>();
    _keys = std::make_unique<key_maker>(*_memory);
    _known_keys.clear();
    _data.clear();
    _queue_pairs.clear();
    _cqs.clear();
    for (const client_id client : {first_process, second_process}) {
        const auto writable = _host->take(client, data_bytes, true);
        const auto readable = _host->take(client, data_bytes, false);
        _data.insert(_data.end(), {writable, readable});
        const std::uint32_t all  = _keys->direct(client, writable);
        const std::uint32_t some = _keys->direct(client, readable);
        mkey_record& limited     = _keys->record(some);
        limited.local_write = limited.remote_write = limited.remote_atomic = false;
        _known_keys.insert(_known_keys.end(), {all, some, _keys->empty(prm::mkey_access_mode::klm, 8)});
        _known_keys.push_back(_keys->list({repeat_header(24, 5, 2), repeat_entry(32, 16, all, address_of(writable)),
                                           repeat_entry(8, 8, all, address_of(writable) + 512)}));
        _known_keys.push_back(_keys->list({klm(100, all, address_of(writable)), klm(7, some, address_of(readable))}));
    }
    _known_keys.push_back(_keys->memic(0, 256));
    const std::uint32_t srq = make_srq(second_process);
    make_pair(prm::qp_service::rc, 0);
    make_pair(prm::qp_service::rc, srq);
    make_pair(prm::qp_service::uc, 0);
    make_pair(prm::qp_service::ud, 0);
    make_pair(prm::qp_service::dci, 0);
    make_target(srq);
}

environment hostile_queues::process(client_id client)
{
    environment made{*_memory, *_host, client};
    made.order = _orders[client - first_process].get();
    return made;
}

std::uint32_t hostile_queues::make_cq(client_id client, std::uint8_t entry_size)
{
    const std::uint32_t number = find_free(_memory->cqs);
    cq_record& made            = fresh(_memory->cqs, number);
    made.log_size              = 3;
    made.entry_size            = entry_size;
    made.buffer                = memory_of(client, _host->take(client, std::size_t{entry_size} << made.log_size, true));
    made.doorbell              = memory_of(client, _host->take(client, 8, false));
    made.completion_events     = {.channel = 1};
    publish(_memory->cqs, number, {.client = client});
    _cqs.push_back(number);
    return number;
}

std::uint32_t hostile_queues::make_srq(client_id client)
{
    const std::uint32_t number = find_free(_memory->srqs);
    srq_record& made           = fresh(_memory->srqs, number);
    made.log_size              = 2;
    made.log_stride            = 6;
    made.pd                    = _keys->pd;
    made.limit                 = 2;
    _shared_entries            = _host->take(client, std::size_t{64} << made.log_size, false);
    _shared_doorbell           = _host->take(client, 8, false);
    made.buffer                = memory_of(client, _shared_entries);
    made.doorbell              = memory_of(client, _shared_doorbell);
    publish(_memory->srqs, number, {.client = client});
    return number;
}

// A target with all rights, whose receives are those of the shared queue.
void hostile_queues::make_target(std::uint32_t srq)
{
    _target              = find_free(_memory->qps);
    qp_record& record    = fresh(_memory->qps, _target);
    record.service       = prm::qp_service::dci;
    record.state         = prm::qp_state::rtr;
    record.receive_cq    = make_cq(second_process, 128);
    record.srq           = srq;
    record.pd            = _keys->pd;
    record.remote_read   = true;
    record.remote_write  = true;
    record.remote_atomic = true;
    record.dc.target     = true;
    record.dc.armed      = true;
    record.dc.access_key = access_key;
    (void)prm::view<prm::dctc>::over(std::as_writable_bytes(std::span(record.context)))
        ->set(prm::dctc::cs_res, prm::scatter_to_cqe::up_to_64b);
    publish(_memory->qps, _target, {.client = second_process, .function = 0});
}

void hostile_queues::make_pair(prm::qp_service service, std::uint32_t srq)
{
    for (const client_id client : {first_process, second_process}) {
        queue_pair made{};
        made.number   = find_free(_memory->qps);
        made.client   = client;
        made.receives = _host->take(client, std::size_t{64} << log_blocks, false);
        made.sends    = _host->take(client, std::size_t{64} << log_blocks, false);
        made.doorbell = _host->take(client, 8, false);

        qp_record& record  = fresh(_memory->qps, made.number);
        record.service     = service;
        record.buffer      = memory_of(client, {made.receives.data(), made.sends.data() + made.sends.size()});
        record.doorbell    = memory_of(client, made.doorbell);
        record.send        = {.log_size = log_blocks, .present = true};
        record.send.offset = static_cast<std::uint64_t>(made.sends.data() - made.receives.data());
        record.receive     = {.log_size = log_blocks, .log_stride = 6, .present = service != prm::qp_service::dci};
        if (service == prm::qp_service::dci) {
            record.dc = {.log_streams = 2, .log_errored = 1};
        }
        record.send_cq     = make_cq(client, 64);
        record.receive_cq  = make_cq(client, 128);
        record.pd          = _keys->pd;
        record.srq         = client == second_process ? srq : 0;
        record.remote_read = record.remote_write = record.remote_atomic = true;
        record.retry_count                                              = 1;
        record.rnr_retry                                                = 2;
        record.ack_timeout                                              = 1;
        record.min_rnr_timer                                            = 1;
        const prm::view<prm::qpc> context(std::as_writable_bytes(std::span(record.context)));
        (void)context.set(prm::qpc::log_msg_max, longest);
        (void)context.set(prm::qpc::cs_res, prm::scatter_to_cqe::up_to_64b);
        (void)context.set(prm::qpc::cs_req, prm::scatter_to_cqe::request_up_to_32b);
        publish(_memory->qps, made.number, {.client = client, .function = 0});
        _queue_pairs.push_back(made);
    }
    connect_again();
}

void hostile_queues::connect_again()
{
    for (std::size_t i = 0; i < _queue_pairs.size(); i++) {
        qp_record& record            = _memory->qps.records[_queue_pairs[i].number];
        record.state                 = prm::qp_state::rts;
        record.path.remote_qpn       = _queue_pairs[i ^ 1].number;
        record.path.remote_lid       = _memory->function_table[0].lid;
        record.send.psn              = 0;
        record.expected_psn          = 0;
        record.send.progress.waiting = requester_wait::none;

        record.dc.errored_streams = 0;
    }
    _host->dead = {};
    for (const std::uint32_t cqn : _cqs) {
        _memory->cqs.records[cqn].overflowed = false;
    }
}

std::uint32_t hostile_queues::any_key(decisions& by)
{
    const std::uint8_t chosen = by.byte();
    return chosen == 255 ? by.word() << 8 : _known_keys[chosen % _known_keys.size()];
}

std::uint64_t hostile_queues::any_address(decisions& by)
{
    const std::uint8_t chosen = by.byte();
    const std::uint64_t near  = by.below(data_bytes + 64);
    return chosen % 8 == 7 ? near : address_of(_data[chosen % _data.size()]) + near;
}

receive_segment hostile_queues::any_place(decisions& by, client_id preferred)
{
    const std::uint8_t how = by.byte();
    if (how % 8 == 7) {
        return {any_key(by), any_address(by), by.below(300)};
    }
    const std::size_t area = (preferred - first_process) * 2U + (how % 8 == 6 ? 1 : 0);
    const std::size_t key  = (preferred - first_process) * 5U + (how % 8 == 6 ? 1 : 0);
    const bool layout      = how % 8 == 5; // zero-based, 120 bytes
    const std::uint32_t at = by.below(layout ? 100 : data_bytes - 100);
    return layout ? receive_segment{_known_keys[key + 3], at, by.below(20)}
                  : receive_segment{_known_keys[key], address_of(_data[area]) + at, by.below(100)};
}

void hostile_queues::append(queue_pair& to, std::span<const std::byte> wqe)
{
    for (std::size_t i = 0; i < wqe.size(); i++) {
        to.sends[(std::size_t{to.produced} * 64 + i) % to.sends.size()] = wqe[i];
    }
    to.produced = static_cast<std::uint16_t>(to.produced + std::max<std::size_t>(1, (wqe.size() + 63) / 64));
    store_big_endian(to.doorbell.data() + 4, std::uint32_t{to.produced});
}

void hostile_queues::post_anything(queue_pair& on, decisions& by)
{
    std::vector<std::byte> bytes(16 * (1 + by.below(20)));
    by.fill(bytes);
    append(on, bytes);
}

// Builds a WQE of that opcode, sometimes with one bad field.
void hostile_queues::post_request(queue_pair& on, decisions& by)
{
    constexpr std::uint8_t opcodes[]{0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x14, 0x15, 0x1b, 0x25};
    const auto opcode = static_cast<prm::wqe_opcode>(opcodes[by.byte() % std::size(opcodes)]);
    work_request made(opcode, static_cast<std::uint8_t>(by.byte() % 4 == 0 ? 8 + (by.byte() & 3) : 0));
    made.completion(static_cast<prm::wqe_completion>(by.byte() & 3)).imm(any_key(by));
    if (_memory->qps.records[on.number].service == prm::qp_service::dci) {
        const std::uint8_t how = by.byte();
        made.stream(how & 3).target(_memory->function_table[0].lid, how < 240 ? _target : on.number,
                                    how % 16 == 15 ? 0 : access_key);
    }
    if (_memory->qps.records[on.number].service == prm::qp_service::ud) {
        made.address(_memory->function_table[0].lid, _queue_pairs[by.byte() % _queue_pairs.size()].number, 0);
    }
    if (opcode == prm::wqe_opcode::umr) {
        using control = prm::wqe_umr_control_segment;
        made.segment<control>([&](auto view) {
            constexpr std::uint64_t often_good = 0x203e6143; // all fields of a key except its domain and signature
            view.template put<true>(control::inline_entries);
            view.template put<4>(control::klm_octowords);
            (void)view.set(control::mkey_mask, static_cast<prm::umr_mask>((by.word() | by.word() << 16) & often_good));
        });
        made.segment<prm::mkc>([&](auto view) {
            by.fill(view.span().first(by.byte() % 4 == 0 ? 24 : 4));
            (void)view.set(prm::mkc::qpn, prm::any_qpn);
            (void)view.set(prm::mkc::mkey_7_0, _keys->variant);
            view.put(prm::mkc::start_addr, any_address(by));
            view.put(prm::mkc::len, std::uint64_t{by.word()});
        });
        for (int i = 0; i < 4; i++) {
            const auto entry = klm(by.below(300), any_key(by), any_address(by));
            made.segment<prm::klm>([&](auto view) { std::ranges::copy(entry, view.span().begin()); });
        }
    } else if (opcode >= prm::wqe_opcode::rdma_write && opcode != prm::wqe_opcode::send &&
               opcode != prm::wqe_opcode::send_imm && opcode != prm::wqe_opcode::local_invalidate) {
        const receive_segment place = any_place(by, on.client == first_process ? second_process : first_process);
        made.remote(place.at & ~std::uint64_t{7}, place.key);
    }
    if (opcode >= prm::wqe_opcode::atomic_cs && opcode <= prm::wqe_opcode::atomic_masked_fa) {
        made.compare_swap(by.word(), by.word());
    }
    const bool inlined = by.byte() % 4 == 0;
    if (inlined) {
        std::array<std::byte, 40> data{};
        made.inline_data(data);
    }
    for (unsigned i = by.byte() % 3U + (inlined ? 0 : 1); i != 0; i--) {
        const receive_segment place = any_place(by, on.client);
        made.data(place.key, place.at, place.length);
    }
    append(on, made.bytes());
}

void hostile_queues::post_receive(queue_pair& on, decisions& by)
{
    const bool shared      = _memory->qps.records[on.number].srq != 0;
    const auto ring        = shared ? _shared_entries : on.receives;
    const std::size_t slot = (on.receives_produced++ * std::size_t{64}) % ring.size();
    const auto entry       = ring.subspan(slot, 64);
    for (std::size_t at = shared ? 16 : 0; at < entry.size(); at += 16) {
        const receive_segment place = any_place(by, on.client);
        store_big_endian(entry.data() + at, place.length);
        store_big_endian(entry.data() + at + 4, place.key);
        store_big_endian(entry.data() + at + 8, place.at);
    }
    if (shared) {
        store_big_endian(entry.data() + 2, static_cast<std::uint16_t>(by.byte()));
    }
    store_big_endian((shared ? _shared_doorbell : on.doorbell).data(), std::uint32_t{on.receives_produced});
}

void hostile_queues::scribble(queue_pair& on, decisions& by)
{
    const std::span<std::byte> places[]{on.sends, on.receives, on.doorbell, _shared_entries, _shared_doorbell};
    const auto place = places[by.byte() % std::size(places)];
    const auto at    = by.below(static_cast<std::uint32_t>(place.size()));
    by.fill(place.subspan(at, std::min<std::size_t>(place.size() - at, by.byte() % 16U)));
}

void hostile_queues::change_state(queue_pair& on, decisions& by)
{
    qp_record& record = _memory->qps.records[on.number];
    switch (by.byte() % 6) {
    case 0:
        record.state = static_cast<prm::qp_state>(by.byte() % 10);
        return;
    case 1: {
        environment device = process(on.client);
        return fail_queue_pair(device, on.number);
    }
    case 2:
        _host->dead[on.client] = !_host->dead[on.client];
        return;
    case 3: {
        const std::uint32_t cqn                 = _cqs[by.byte() % _cqs.size()];
        environment device                      = process(on.client);
        _memory->cqs.records[cqn].consumer_seen = _memory->cqs.records[cqn].producer;
        return arm_completion_queue(device, cqn, by.byte() & 3, cq_arm::any_completion, by.word());
    }
    case 4:
        _host->trace_wanted = by.byte() % 8 == 7; // what is written of each entry takes most of the time
        return;
    default:
        return connect_again();
    }
}

void hostile_queues::run_all(decisions& by)
{
    _host->time_ns += by.word() * std::uint64_t{64};
    for (const queue_pair& one : _queue_pairs) {
        environment device = process(one.client);
        (void)run_send_queue(device, one.number, 8);
        (void)flush_queue_pair(device, one.number);
    }
    if (by.byte() % 4 != 0) {
        connect_again(); // otherwise everything is soon in error
    }
}

void hostile_queues::check()
{
    if (_violation.empty()) {
        _violation = _host->violation;
    }
    for (const std::uint32_t cqn : _cqs) {
        cq_record& cq    = _memory->cqs.records[cqn];
        cq.consumer_seen = cq.producer; // as if the owner polled
    }
}

void hostile_queues::step(decisions& by)
{
    const std::uint8_t chosen = by.byte();
    queue_pair& on            = _queue_pairs[by.byte() % _queue_pairs.size()];
    switch (chosen & 15) {
    case 0:
        return chosen < 64 ? post_anything(on, by) : connect_again();
    case 1:
        return chosen < 64 ? scribble(on, by) : connect_again();
    case 2:
        return chosen < 128 ? change_state(on, by) : connect_again();
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
        return post_receive(on, by);
    case 8:
    case 9:
    case 10:
    case 11:
    case 12:
        return post_request(on, by);
    default:
        return run_all(by);
    }
}

void hostile_queues::run(std::span<const std::uint8_t> bytes)
{
    build();
    const std::uint8_t last = bytes.empty() ? 0 : bytes.back();
    for (auto& order : _orders) {
        order = last % 4 == 3 ? std::make_unique<adversarial_order>(last) : nullptr;
    }
    decisions by(bytes);
    while (!by.at_end() && _violation.empty()) {
        step(by);
        check();
    }
    decisions nothing({});
    run_all(nothing);
    check();
    _completions += _memory->counts.completions;
    _bytes_moved += _memory->counts.bytes_moved;
}

} // namespace ucxl::softhca::test
