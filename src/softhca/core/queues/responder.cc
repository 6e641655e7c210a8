#include "responder.h"

#include <algorithm>

#include "atomics.h"
#include "connection.h"
#include "prm/qp.h"
#include "softhca/core/arena/fault_plan.h"
#include "softhca/core/keys/key_work.h"
#include "work_completion.h"

namespace ucxl::softhca
{

namespace
{

using outcome = transfer_result::outcome;
using prm::cqe64;
using prm::cqe_syndrome;
using prm::event_type;

prm::const_view<prm::qpc> context_of(const qp_record& qp)
{
    return prm::const_view<prm::qpc>(std::as_bytes(std::span(qp.context)));
}

answer remote_access()
{
    return refusal(cqe_syndrome::remote_access, event_type::wq_access_error);
}

answer invalid_request()
{
    return refusal(cqe_syndrome::remote_invalid_request, event_type::wq_invalid_request);
}

// A queue of the responder is no longer accessible.
answer broken_responder()
{
    return refusal(cqe_syndrome::remote_operation, event_type::wq_catastrophic_error);
}

answer presence(const exchange& sender, const responder& peer)
{
    return sender.device.outside.alive(peer.qp.owner.client) ? answer{} : nobody_answers();
}

// The memory of the responder's key is gone: with the responder itself, or only with the third process it belongs to.
answer remote_memory_gone(const exchange& sender, const responder& peer)
{
    return sender.device.outside.alive(peer.qp.owner.client) ? remote_access() : nobody_answers();
}

// Moves the data of a message: in the adversarial order one of its pieces, and `in_turns` counts them.
transfer_result move_data(const exchange& sender, const memory_side& to, const memory_side& from, std::uint64_t length,
                          std::uint64_t* in_turns)
{
    if (sender.pieces == nullptr || in_turns == nullptr) {
        return transfer(sender.device, to, from, length, {}, in_turns);
    }
    const piece_order::part now = (*sender.pieces)[*in_turns];
    std::uint64_t begin         = now.begin;
    sender.device.turn          = {.pieces = ~std::uint32_t{0}, .bytes = ~std::uint64_t{0}};
    transfer_result result      = transfer(sender.device, to, from, now.end, {}, &begin);
    if (result.result == outcome::done && ++*in_turns < sender.pieces->count()) {
        result.result = outcome::part_done;
    }
    return result;
}

answer write_memory(const exchange& sender, const responder& peer)
{
    const std::uint64_t length = sender.request.data.length();
    if (length == 0) {
        return presence(sender, peer); // the key of an empty range is not checked
    }
    if (!peer.qp.remote_write) {
        return invalid_request();
    }
    const reference target{sender.request.remote_key, sender.request.remote_address, length, nullptr};
    const auto moved =
        move_data(sender, {peer.user(), right::remote_write, {&target, 1}},
                  {sender.user(), right::local_read, sender.request.data.items()}, length, sender.moved());
    switch (moved.result) {
    case outcome::done:
        return {};
    case outcome::part_done:
        return next_turn();
    case outcome::to_refused: {
        // Data is read before anything is sent, so the requester's own error takes precedence.
        const answer own = unanswered(sender);
        return own.result == answer::outcome::done ? remote_access() : own;
    }
    case outcome::to_gone:
        return remote_memory_gone(sender, peer);
    case outcome::from_refused:
    case outcome::from_gone:
        break;
    }
    return own_fault(cqe_syndrome::local_protection);
}

// Reads from the responder's memory to that of the requester or of the model.
answer read_memory(const exchange& sender, const responder& peer, right needed, std::span<const reference> to,
                   std::uint64_t length, std::uint64_t* in_turns = nullptr)
{
    const reference source{sender.request.remote_key, sender.request.remote_address, length, nullptr};
    const auto moved = move_data(sender, {sender.user(), right::local_write, to}, {peer.user(), needed, {&source, 1}},
                                 length, in_turns);
    switch (moved.result) {
    case outcome::done:
        return {};
    case outcome::part_done:
        return next_turn();
    case outcome::from_refused:
        return remote_access();
    case outcome::from_gone:
        return remote_memory_gone(sender, peer);
    case outcome::to_refused:
    case outcome::to_gone:
        break;
    }
    return own_fault(cqe_syndrome::local_protection);
}

prm::cqe_opcode receive_opcode(prm::wqe_opcode opcode)
{
    switch (opcode) {
    case prm::wqe_opcode::send_imm:
        return prm::cqe_opcode::responder_send_imm;
    case prm::wqe_opcode::send_invalidate:
        return prm::cqe_opcode::responder_send_inv;
    case prm::wqe_opcode::rdma_write_imm:
        return prm::cqe_opcode::responder_write_imm;
    default:
        return prm::cqe_opcode::responder_send;
    }
}

// The receive completes with an error. The CQE tells its owner, so there is no event.
answer fail_receive(const exchange& sender, const responder& peer, const posted_receive& next, cqe_syndrome own,
                    cqe_syndrome told)
{
    (void)complete_failed_receive(sender.device, peer.qp, peer.qpn, next, own);
    return refusal(told);
}

answer scatter(const exchange& sender, const responder& peer, const posted_receive& next, const key_user& user,
               prm::cqe_format format, completion& cqe)
{
    const std::uint64_t length = sender.request.data.length();
    const reference in_entry{0, 0, length, inline_place(cqe, format)};
    const auto places = format == prm::cqe_format::no_inline ? next.data.items() : std::span(&in_entry, 1);
    const auto moved  = move_data(sender, {user, right::local_write, places},
                                  {sender.user(), right::local_read, sender.request.data.items()}, length,
                                 format == prm::cqe_format::no_inline ? turns_of(sender, peer) : nullptr);
    (void)(*cqe.entry).set(cqe64::format, format);
    switch (moved.result) {
    case outcome::done:
        return {};
    case outcome::part_done:
        return next_turn();
    case outcome::to_refused:
        return fail_receive(sender, peer, next, cqe_syndrome::local_protection, cqe_syndrome::remote_operation);
    case outcome::to_gone:
        if (sender.device.outside.alive(peer.qp.owner.client)) {
            return fail_receive(sender, peer, next, cqe_syndrome::local_protection, cqe_syndrome::remote_operation);
        }
        return nobody_answers();
    case outcome::from_refused:
    case outcome::from_gone:
        break;
    }
    return own_fault(cqe_syndrome::local_protection);
}

answer finish_receive(const exchange& sender, const responder& peer, const arrival& message, completion& cqe)
{
    if (!complete_receive(sender, peer, cqe, message)) {
        return sender.device.outside.alive(peer.qp.owner.client) ? broken_responder() : nobody_answers();
    }
    return {};
}

arrival arrival_of(const exchange& sender, const posted_receive& next)
{
    return {next, receive_opcode(sender.request.opcode), sender.request.data.length()};
}

// Fills in all of the CQE that describes the receive and the sender.
void describe_arrival(const exchange& sender, const responder& peer, completion& cqe, const arrival& message)
{
    const auto entry = *cqe.entry;
    describe_receive(cqe, peer.qp, peer.qpn, message.opcode, message.taken.index,
                     static_cast<std::uint32_t>(message.bytes));
    entry.put(cqe64::imm_inval_pkey, sender.request.imm);
    entry.put(cqe64::solicited, sender.request.solicited);
    if (entry.get(cqe64::format) != prm::cqe_format::inline_32) { // otherwise data is in that place
        entry.put(cqe64::slid, sender.device.memory.function_table[sender.qp.owner.function].lid);
        (void)entry.set(cqe64::sl, sender.qp.path.service_level & 15U);
        (void)entry.set(cqe64::src_qpn, sender.qpn);
    }
}

} // namespace

prm::scatter_to_cqe response_scatter(const qp_record& qp)
{
    if (qp.dc.target) { // 32 bytes are "not available" there (UCT_IB_MLX5_DCTC_CS_RES_NA in ib_mlx5_ifc.h of UCX)
        const auto context = prm::const_view<prm::dctc>::over(std::as_bytes(std::span(qp.context)));
        const auto limit   = context->get(prm::dctc::cs_res);
        return limit == prm::scatter_to_cqe::up_to_64b ? limit : prm::scatter_to_cqe::none;
    }
    return context_of(qp).get(prm::qpc::cs_res);
}

prm::scatter_to_cqe request_scatter(const qp_record& qp)
{
    return context_of(qp).get(prm::qpc::cs_req);
}

answer unanswered(const exchange& sender)
{
    if (sender.request.brings_data()) {
        return {};
    }
    constexpr std::uint64_t enough_pieces = 1U << 16; // others wait for the lock
    for (const reference& part : sender.request.data.items()) {
        if (part.data == nullptr && check_access(sender.device, sender.user(), part.key, part.address, part.length,
                                                 right::local_read, enough_pieces) != access_fault::none) {
            return own_fault(cqe_syndrome::local_protection);
        }
    }
    return {};
}

answer find_receive(const exchange& sender, const responder& peer, posted_receive& next)
{
    switch (read_next_receive(sender.device, peer.qp, next)) {
    case received::one:
        return {};
    case received::none:
        return {.result = answer::outcome::not_ready};
    case received::gone:
        return nobody_answers();
    case received::broken:
        break;
    }
    return broken_responder();
}

bool complete_receive(const exchange& sender, const responder& peer, completion& cqe, const arrival& message)
{
    describe_arrival(sender, peer, cqe, message);
    const queue_step step = step_past(peer.qp, peer.qpn, message.taken);
    const bool done       = complete(sender.device, peer.qp.receive_cq, cqe, step);
    if (!done) {
        take_step(sender.device.memory, step);
    }
    check_receive_limit(sender.device, peer.qp);
    return done;
}

bool deliver_at_once(const exchange& sender, const responder& peer, const arrival& message, completion& cqe,
                     const memory_side& to, std::span<const reference> data, std::uint64_t length,
                     std::uint64_t* in_turns)
{
    if (sender.pieces != nullptr) {
        return false;
    }
    describe_arrival(sender, peer, cqe, message);
    completion_write writing;
    if (!writing.begin(sender.device, peer.qp.receive_cq, cqe, step_past(peer.qp, peer.qpn, message.taken))) {
        return false;
    }
    const auto moved = transfer(sender.device, to, {sender.user(), right::local_read, data}, length,
                                {writing.to(), writing.from()}, in_turns);
    if (moved.result != outcome::done) {
        writing.abandon(sender.device);
        return false;
    }
    writing.end(sender.device, cqe);
    check_receive_limit(sender.device, peer.qp);
    return true;
}

answer deliver_write(const exchange& sender, const responder& peer)
{
    if (sender.request.opcode == prm::wqe_opcode::rdma_write) {
        return write_memory(sender, peer);
    }
    posted_receive next;
    answer result = find_receive(sender, peer, next);
    if (result.result != answer::outcome::done) {
        return result;
    }
    completion cqe;
    const arrival message = arrival_of(sender, next);
    const reference target{sender.request.remote_key, sender.request.remote_address, message.bytes, nullptr};
    if (peer.qp.remote_write &&
        deliver_at_once(sender, peer, message, cqe, {peer.user(), right::remote_write, {&target, 1}},
                        sender.request.data.items(), message.bytes, sender.moved())) {
        return {};
    }
    result = write_memory(sender, peer);
    return result.result == answer::outcome::done ? finish_receive(sender, peer, message, cqe) : result;
}

answer deliver_send(const exchange& sender, const responder& peer)
{
    posted_receive next;
    answer result = find_receive(sender, peer, next);
    if (result.result != answer::outcome::done) {
        return result;
    }
    if (sender.request.data.length() > next.data.length()) {
        if (!is_reliable(peer.qp.service)) {
            return nobody_answers(); // dropped; the receive is used for the next message
        }
        return fail_receive(sender, peer, next, cqe_syndrome::local_length, cqe_syndrome::remote_invalid_request);
    }
    completion cqe;
    const arrival message  = arrival_of(sender, next);
    const auto format      = inline_format(sender.device, peer.qp.receive_cq, response_scatter(peer.qp), message.bytes);
    const bool invalidates = sender.request.opcode == prm::wqe_opcode::send_invalidate;
    key_user user          = peer.user();
    user.pd                = next.pd;
    if (format == prm::cqe_format::no_inline && !invalidates &&
        deliver_at_once(sender, peer, message, cqe, {user, right::local_write, next.data.items()},
                        sender.request.data.items(), message.bytes, turns_of(sender, peer))) {
        return {};
    }
    result = scatter(sender, peer, next, user, format, cqe);
    if (result.result != answer::outcome::done) {
        return result;
    }
    if (invalidates && invalidate_key(sender.device, peer.qp, peer.qpn, sender.request.imm, true) != no_syndrome) {
        return remote_access();
    }
    return finish_receive(sender, peer, message, cqe);
}

answer serve_read(const exchange& sender, const responder& peer, completion& cqe)
{
    const std::uint64_t length = sender.request.data.length();
    (*cqe.entry).put(cqe64::byte_cnt, static_cast<std::uint32_t>(length));
    if (length == 0) {
        return presence(sender, peer);
    }
    if (!peer.qp.remote_read) {
        return invalid_request();
    }
    const auto format = sender.request.signaled()
                            ? inline_format(sender.device, sender.qp.send_cq, request_scatter(sender.qp), length)
                            : prm::cqe_format::no_inline;
    if (format == prm::cqe_format::no_inline) {
        return read_memory(sender, peer, right::remote_read, sender.request.data.items(), length, sender.moved());
    }
    const reference in_entry{0, 0, length, inline_place(cqe, format)};
    const answer result = read_memory(sender, peer, right::remote_read, {&in_entry, 1}, length);
    (void)(*cqe.entry).set(cqe64::format, format);
    return result;
}

// An atomic works on one word: its bytes must be adjacent, and aligned in memory, too.
bool reaches_one_word(const exchange& sender, const responder& peer, unsigned bytes)
{
    key_walk walk(sender.device, peer.user(), sender.request.remote_key, sender.request.remote_address, bytes,
                  right::remote_atomic);
    piece word{};
    return walk.next(word) && word.length == bytes && word.address % bytes == 0;
}

bool is_made_of_entries(const exchange& sender)
{
    const mkey_record* const key = sender.device.memory.find_key(sender.request.remote_key);
    return key != nullptr && (key->mode == prm::mkey_access_mode::klm || key->mode == prm::mkey_access_mode::ksm);
}

// The old value always goes to memory: pollers disagree on its byte order in CQEs.
answer serve_atomic(const exchange& sender, const responder& peer, completion& cqe)
{
    const auto operation =
        atomic_of(sender.request.atomic_kind, sender.request.atomic, sender.request.opcode, sender.request.op_mod);
    if (!operation) {
        return own_fault(cqe_syndrome::local_qp_operation);
    }
    const unsigned bytes = operation->bytes;
    if (sender.request.data.length() < bytes) {
        return own_fault(cqe_syndrome::local_length);
    }
    if (!peer.qp.remote_atomic || sender.request.remote_address % bytes != 0) {
        return invalid_request();
    }
    std::uint64_t old = 0; // little-endian, as on the host: 4-byte operands are in its first half
    const reference held{0, 0, bytes, reinterpret_cast<std::byte*>(&old)};
    answer result = read_memory(sender, peer, right::remote_atomic, {&held, 1}, bytes);
    if (result.result != answer::outcome::done) {
        return result;
    }
    if (!reaches_one_word(sender, peer, bytes)) {
        return invalid_request();
    }
    if (is_made_of_entries(sender) && refuses(sender.device.memory, refusable::indirect_atomic)) {
        return remote_access();
    }
    std::uint64_t changed = apply(*operation, old);
    if (changed != old) {
        const reference target{sender.request.remote_key, sender.request.remote_address, bytes, nullptr};
        const reference source{0, 0, bytes, reinterpret_cast<std::byte*>(&changed)};
        const auto moved = transfer(sender.device, {peer.user(), right::remote_atomic, {&target, 1}},
                                    {sender.user(), right::local_read, {&source, 1}}, bytes);
        if (moved.result != outcome::done) {
            return moved.result == outcome::to_gone ? remote_memory_gone(sender, peer) : remote_access();
        }
    }
    std::uint64_t reply = result_bytes(*operation, old);
    const reference answered{0, 0, bytes, reinterpret_cast<std::byte*>(&reply)};
    const auto returned = transfer(sender.device, {sender.user(), right::local_write, sender.request.data.items()},
                                   {peer.user(), right::local_read, {&answered, 1}}, bytes);
    (*cqe.entry).put(cqe64::byte_cnt, bytes);
    return returned.result == outcome::done ? answer{} : own_fault(cqe_syndrome::local_protection);
}

} // namespace ucxl::softhca
