#include "responder.h"

#include <algorithm>

#include "atomics.h"
#include "fault_plan.h"
#include "key_work.h"
#include "prm/qpc.h"
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

// A queue of the responder is not there any more.
answer broken_responder()
{
    return refusal(cqe_syndrome::remote_operation, event_type::wq_catastrophic_error);
}

answer presence(const exchange& of, const responder& at)
{
    return of.device.outside.alive(at.qp.owner.client) ? answer{} : nobody_answers();
}

// Memory behind the responder's key is gone: with the responder itself, or only the third process it belongs to.
answer remote_memory_gone(const exchange& of, const responder& at)
{
    return of.device.outside.alive(at.qp.owner.client) ? remote_access() : nobody_answers();
}

answer write_memory(const exchange& of, const responder& to)
{
    const std::uint64_t length = of.request.data.length();
    if (length == 0) {
        return presence(of, to); // the key of nothing is not looked at
    }
    if (!to.qp.remote_write) {
        return invalid_request();
    }
    const reference target{of.request.remote_key, of.request.remote_address, length, nullptr};
    const auto moved = transfer(of.device, {to.user(), right::remote_write, {&target, 1}},
                                {of.user(), right::local_read, of.request.data.items()}, length, {}, of.moved());
    switch (moved.result) {
    case outcome::done:
        return {};
    case outcome::part_done:
        return next_turn();
    case outcome::to_refused: {
        // Data is fetched before anything is sent, so of two mistakes the own one counts.
        const answer own = unanswered(of);
        return own.what == answer::kind::done ? remote_access() : own;
    }
    case outcome::to_gone:
        return remote_memory_gone(of, to);
    case outcome::from_refused:
    case outcome::from_gone:
        break;
    }
    return own_fault(cqe_syndrome::local_protection);
}

// From the responder's memory to the requester's, or to bytes of the model.
answer read_memory(const exchange& of, const responder& from, right needed, std::span<const reference> to,
                   std::uint64_t length, std::uint64_t* in_turns = nullptr)
{
    const reference source{of.request.remote_key, of.request.remote_address, length, nullptr};
    const auto moved = transfer(of.device, {of.user(), right::local_write, to}, {from.user(), needed, {&source, 1}},
                                length, {}, in_turns);
    switch (moved.result) {
    case outcome::done:
        return {};
    case outcome::part_done:
        return next_turn();
    case outcome::from_refused:
        return remote_access();
    case outcome::from_gone:
        return remote_memory_gone(of, from);
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

// The receive completes with an error, which tells its owner, so no event does.
answer fail_receive(const exchange& of, const responder& to, const posted_receive& next, cqe_syndrome own,
                    cqe_syndrome told)
{
    (void)complete_failed_receive(of.device, to.qp, to.qpn, next, own);
    return refusal(told);
}

// Into the receive's buffers, or into the completion.
answer scatter(const exchange& of, const responder& to, const posted_receive& next, const key_user& user,
               prm::cqe_format format, completion& what)
{
    const std::uint64_t length = of.request.data.length();
    const reference in_entry{0, 0, length, inline_place(what, format)};
    const auto places = format == prm::cqe_format::no_inline ? next.data.items() : std::span(&in_entry, 1);
    const auto moved =
        transfer(of.device, {user, right::local_write, places}, {of.user(), right::local_read, of.request.data.items()},
                 length, {}, format == prm::cqe_format::no_inline ? turns_of(of, to) : nullptr);
    (void)(*what.entry).set(cqe64::format, format);
    switch (moved.result) {
    case outcome::done:
        return {};
    case outcome::part_done:
        return next_turn();
    case outcome::to_refused:
        return fail_receive(of, to, next, cqe_syndrome::local_protection, cqe_syndrome::remote_operation);
    case outcome::to_gone:
        if (of.device.outside.alive(to.qp.owner.client)) {
            return fail_receive(of, to, next, cqe_syndrome::local_protection, cqe_syndrome::remote_operation);
        }
        return nobody_answers();
    case outcome::from_refused:
    case outcome::from_gone:
        break;
    }
    return own_fault(cqe_syndrome::local_protection);
}

answer finish_receive(const exchange& of, const responder& to, const arrival& message, completion& what)
{
    if (!complete_receive(of, to, what, message)) {
        return of.device.outside.alive(to.qp.owner.client) ? broken_responder() : nobody_answers();
    }
    return {};
}

arrival arrival_of(const exchange& of, const posted_receive& next)
{
    return {next, receive_opcode(of.request.opcode), of.request.data.length()};
}

// Everything about the receive and the sender that has a place in the completion.
void describe_arrival(const exchange& of, const responder& at, completion& what, const arrival& message)
{
    const auto entry = *what.entry;
    describe_receive(what, at.qp, at.qpn, message.opcode, message.taken.index,
                     static_cast<std::uint32_t>(message.bytes));
    entry.put(cqe64::imm_inval_pkey, of.request.imm);
    entry.put(cqe64::solicited, of.request.solicited);
    if (entry.get(cqe64::format) != prm::cqe_format::inline_32) { // else data is in that place
        entry.put(cqe64::slid, of.device.memory.function_table[of.qp.owner.function].lid);
        (void)entry.set(cqe64::sl, of.qp.path.service_level & 15U);
        (void)entry.set(cqe64::src_qpn, of.qpn);
    }
}

} // namespace

prm::scatter_to_cqe response_scatter(const qp_record& qp)
{
    return context_of(qp).get(prm::qpc::cs_res);
}

prm::scatter_to_cqe request_scatter(const qp_record& qp)
{
    return context_of(qp).get(prm::qpc::cs_req);
}

answer unanswered(const exchange& of)
{
    if (of.request.brings_data()) {
        return {};
    }
    constexpr std::uint64_t enough_pieces = 1U << 16; // others wait for the lock
    for (const reference& part : of.request.data.items()) {
        if (part.data == nullptr && check_access(of.device, of.user(), part.key, part.address, part.length,
                                                 right::local_read, enough_pieces) != access_fault::none) {
            return own_fault(cqe_syndrome::local_protection);
        }
    }
    return {};
}

answer find_receive(const exchange& of, const responder& at, posted_receive& next)
{
    switch (read_next_receive(of.device, at.qp, next)) {
    case received::one:
        return {};
    case received::none:
        return {.what = answer::kind::not_ready};
    case received::gone:
        return nobody_answers();
    case received::broken:
        break;
    }
    return broken_responder();
}

bool complete_receive(const exchange& of, const responder& at, completion& what, const arrival& message)
{
    describe_arrival(of, at, what, message);
    const queue_step step = step_past(at.qp, at.qpn, message.taken);
    const bool done       = complete(of.device, at.qp.receive_cq, what, step);
    if (!done) {
        take_step(of.device.memory, step);
    }
    check_receive_limit(of.device, at.qp);
    return done;
}

bool deliver_at_once(const exchange& of, const responder& at, const arrival& message, completion& what,
                     const memory_side& to, std::span<const reference> data, std::uint64_t length,
                     std::uint64_t* in_turns)
{
    describe_arrival(of, at, what, message);
    completion_write writing;
    if (!writing.begin(of.device, at.qp.receive_cq, what, step_past(at.qp, at.qpn, message.taken))) {
        return false;
    }
    const auto moved =
        transfer(of.device, to, {of.user(), right::local_read, data}, length, {writing.to(), writing.from()}, in_turns);
    if (moved.result != outcome::done) {
        writing.abandon(of.device);
        return false;
    }
    writing.end(of.device, what);
    check_receive_limit(of.device, at.qp);
    return true;
}

answer deliver_write(const exchange& of, const responder& to)
{
    if (of.request.opcode == prm::wqe_opcode::rdma_write) {
        return write_memory(of, to);
    }
    posted_receive next;
    answer result = find_receive(of, to, next);
    if (result.what != answer::kind::done) {
        return result;
    }
    completion what;
    const arrival message = arrival_of(of, next);
    const reference target{of.request.remote_key, of.request.remote_address, message.bytes, nullptr};
    if (to.qp.remote_write && deliver_at_once(of, to, message, what, {to.user(), right::remote_write, {&target, 1}},
                                              of.request.data.items(), message.bytes, of.moved())) {
        return {};
    }
    result = write_memory(of, to);
    return result.what == answer::kind::done ? finish_receive(of, to, message, what) : result;
}

answer deliver_send(const exchange& of, const responder& to)
{
    posted_receive next;
    answer result = find_receive(of, to, next);
    if (result.what != answer::kind::done) {
        return result;
    }
    if (of.request.data.length() > next.data.length()) {
        if (to.qp.service != prm::qp_service::rc) {
            return nobody_answers(); // dropped, the receive is for the next one
        }
        return fail_receive(of, to, next, cqe_syndrome::local_length, cqe_syndrome::remote_invalid_request);
    }
    completion what;
    const arrival message  = arrival_of(of, next);
    const auto format      = inline_format(of.device, to.qp.receive_cq, response_scatter(to.qp), message.bytes);
    const bool invalidates = of.request.opcode == prm::wqe_opcode::send_invalidate;
    key_user user          = to.user();
    user.pd                = next.pd;
    if (format == prm::cqe_format::no_inline && !invalidates &&
        deliver_at_once(of, to, message, what, {user, right::local_write, next.data.items()}, of.request.data.items(),
                        message.bytes, turns_of(of, to))) {
        return {};
    }
    result = scatter(of, to, next, user, format, what);
    if (result.what != answer::kind::done) {
        return result;
    }
    if (invalidates && invalidate_key(of.device, to.qp, to.qpn, of.request.imm, true) != no_syndrome) {
        return remote_access();
    }
    return finish_receive(of, to, message, what);
}

answer serve_read(const exchange& of, const responder& from, completion& what)
{
    const std::uint64_t length = of.request.data.length();
    (*what.entry).put(cqe64::byte_cnt, static_cast<std::uint32_t>(length));
    if (length == 0) {
        return presence(of, from);
    }
    if (!from.qp.remote_read) {
        return invalid_request();
    }
    const auto format = of.request.signaled() ? inline_format(of.device, of.qp.send_cq, request_scatter(of.qp), length)
                                              : prm::cqe_format::no_inline;
    if (format == prm::cqe_format::no_inline) {
        return read_memory(of, from, right::remote_read, of.request.data.items(), length, of.moved());
    }
    const reference in_entry{0, 0, length, inline_place(what, format)};
    const answer result = read_memory(of, from, right::remote_read, {&in_entry, 1}, length);
    (void)(*what.entry).set(cqe64::format, format);
    return result;
}

// An atomic works on one word: its bytes do not lie apart, and are aligned in memory, too.
bool reaches_one_word(const exchange& of, const responder& at, unsigned bytes)
{
    key_walk walk(of.device, at.user(), of.request.remote_key, of.request.remote_address, bytes, right::remote_atomic);
    piece word{};
    return walk.next(word) && word.length == bytes && word.address % bytes == 0;
}

bool is_made_of_entries(const exchange& of)
{
    const mkey_record* const key = of.device.memory.find_key(of.request.remote_key);
    return key != nullptr && (key->mode == prm::mkey_access_mode::klm || key->mode == prm::mkey_access_mode::ksm);
}

// What the target held goes to memory even where data may go into completions: pollers disagree on its byte order
// there.
answer serve_atomic(const exchange& of, const responder& at, completion& what)
{
    const auto operation = atomic_of(of.request.atomic_kind, of.request.atomic, of.request.opcode, of.request.op_mod);
    if (!operation) {
        return own_fault(cqe_syndrome::local_qp_operation);
    }
    const unsigned bytes = operation->bytes;
    if (of.request.data.length() < bytes) {
        return own_fault(cqe_syndrome::local_length);
    }
    if (!at.qp.remote_atomic || of.request.remote_address % bytes != 0) {
        return invalid_request();
    }
    std::uint64_t old = 0; // as the machine has it, little-endian: 4-byte operands are in its first half
    const reference held{0, 0, bytes, reinterpret_cast<std::byte*>(&old)};
    answer result = read_memory(of, at, right::remote_atomic, {&held, 1}, bytes);
    if (result.what != answer::kind::done) {
        return result;
    }
    if (!reaches_one_word(of, at, bytes)) {
        return invalid_request();
    }
    if (is_made_of_entries(of) && refuses(of.device.memory, refusable::indirect_atomic)) {
        return remote_access();
    }
    std::uint64_t changed = apply(*operation, old);
    if (changed != old) {
        const reference target{of.request.remote_key, of.request.remote_address, bytes, nullptr};
        const reference source{0, 0, bytes, reinterpret_cast<std::byte*>(&changed)};
        const auto moved = transfer(of.device, {at.user(), right::remote_atomic, {&target, 1}},
                                    {of.user(), right::local_read, {&source, 1}}, bytes);
        if (moved.result != outcome::done) {
            return moved.result == outcome::to_gone ? remote_memory_gone(of, at) : remote_access();
        }
    }
    std::uint64_t reply = result_bytes(*operation, old);
    const reference answered{0, 0, bytes, reinterpret_cast<std::byte*>(&reply)};
    const auto returned = transfer(of.device, {of.user(), right::local_write, of.request.data.items()},
                                   {at.user(), right::local_read, {&answered, 1}}, bytes);
    (*what.entry).put(cqe64::byte_cnt, bytes);
    return returned.result == outcome::done ? answer{} : own_fault(cqe_syndrome::local_protection);
}

} // namespace ucxl::softhca
