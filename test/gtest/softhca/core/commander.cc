#include "commander.h"

#include <algorithm>
#include <format>
#include <iterator>
#include <stdexcept>

namespace ucxl::softhca::test
{

namespace
{

using prm::command;
using prm::command_status;

template <typename S, typename Field, typename Value>
void set(prm::view<S> to, Field field, Value value)
{
    if (!to.set(field, value)) {
        throw std::invalid_argument("a test's value does not fit in its field");
    }
}

} // namespace

command_status commander::send(std::span<const std::byte> input, std::size_t out_bytes)
{
    _out.assign(out_bytes, std::byte{0xcc});
    return _process.device().command(_function, _uid, input, _out);
}

std::uint32_t commander::must(command_status status, std::uint32_t number) const
{
    if (status != command_status::ok) {
        throw std::runtime_error(std::format("a command was refused: {}", prm::name_of(status)));
    }
    return number;
}

command_status commander::plain(command opcode, std::uint32_t number)
{
    mailbox<prm::dealloc_pd_in> input;
    set(*input, prm::dealloc_pd_in::opcode, opcode);
    set(*input, prm::dealloc_pd_in::pd, number);
    return send(input);
}

std::uint32_t commander::alloc_pd()
{
    const command_status status = plain(command::alloc_pd, 0);
    return must(status, out<prm::alloc_pd_out>().get(prm::alloc_pd_out::pd));
}

std::uint32_t commander::alloc_uar()
{
    const auto made = _process.device().alloc_uar(_function);
    return made ? *made : must(made.error(), 0);
}

queue_memory commander::umem(std::size_t bytes, std::uint32_t access)
{
    const std::span<std::byte> memory = _process.allocate(bytes);
    const auto made =
        _process.device().create_umem(_function, _uid, reinterpret_cast<std::uint64_t>(memory.data()), bytes, access);
    return {made ? *made : must(made.error(), 0), memory};
}

mailbox<prm::create_cq_in> commander::cq_input(unsigned log_size)
{
    mailbox<prm::create_cq_in> input;
    const auto context = (*input).at(prm::create_cq_in::cqc);
    set(*input, prm::create_cq_in::opcode, command::create_cq);
    set(*input, prm::create_cq_in::cq_umem_valid, true);
    set(*input, prm::create_cq_in::cq_umem_id, umem(std::size_t{64} << log_size).umem);
    set(context, prm::cqc::dbr_umem_valid, true);
    set(context, prm::cqc::dbr_umem_id, umem(64, 0).umem);
    set(context, prm::cqc::log_cq_size, log_size);
    set(context, prm::cqc::uar_page, alloc_uar());
    return input;
}

std::uint32_t commander::create_cq(unsigned log_size)
{
    auto input                  = cq_input(log_size);
    const command_status status = send(input);
    return must(status, out<prm::create_cq_out>().get(prm::create_cq_out::cqn));
}

mailbox<prm::create_rmp_in> commander::rmp_input(unsigned log_size, unsigned log_stride)
{
    mailbox<prm::create_rmp_in> input;
    const auto context = (*input).at(prm::create_rmp_in::rmp_context);
    const auto queue   = context.at(prm::rmpc::wq);
    set(*input, prm::create_rmp_in::opcode, command::create_rmp);
    set(context, prm::rmpc::state, prm::rmp_state::ready);
    set(queue, prm::wq::pd, alloc_pd());
    set(queue, prm::wq::log_wq_sz, log_size);
    set(queue, prm::wq::log_wq_stride, log_stride);
    set(queue, prm::wq::wq_umem_valid, true);
    set(queue, prm::wq::wq_umem_id, umem(std::size_t{1} << (log_size + log_stride)).umem);
    set(queue, prm::wq::dbr_umem_valid, true);
    set(queue, prm::wq::dbr_umem_id, umem(64, 0).umem);
    return input;
}

std::uint32_t commander::create_srq(unsigned log_size, unsigned log_stride)
{
    auto input                  = rmp_input(log_size, log_stride);
    const command_status status = send(input);
    return must(status, out<prm::create_rmp_out>().get(prm::create_rmp_out::rmpn));
}

mailbox<prm::create_qp_in> commander::qp_input(qp_parts parts)
{
    mailbox<prm::create_qp_in> input;
    const auto context      = (*input).at(prm::create_qp_in::qpc);
    const std::size_t bytes = (std::size_t{64} << parts.log_receive) + (std::size_t{64} << parts.log_send);
    set(*input, prm::create_qp_in::opcode, command::create_qp);
    set(*input, prm::create_qp_in::wq_umem_valid, true);
    set(*input, prm::create_qp_in::wq_umem_id, umem(bytes).umem);
    set(context, prm::qpc::st, parts.service);
    set(context, prm::qpc::pm_state, prm::path_migration::migrated);
    set(context, prm::qpc::pd, parts.pd != 0 ? parts.pd : alloc_pd());
    set(context, prm::qpc::uar_page, parts.uar != 0 ? parts.uar : alloc_uar());
    set(context, prm::qpc::cqn_snd, parts.send_cq != 0 ? parts.send_cq : create_cq());
    set(context, prm::qpc::cqn_rcv, parts.receive_cq != 0 ? parts.receive_cq : create_cq());
    set(context, prm::qpc::log_sq_size, parts.log_send);
    set(context, prm::qpc::log_rq_size, parts.log_receive);
    set(context, prm::qpc::log_rq_stride, 2U);
    if (parts.service == prm::qp_service::dci) {
        set(context, prm::qpc::rq_type, prm::receive_queue_type::zero_size);
    }
    if (parts.srq != 0) {
        set(context, prm::qpc::rq_type, prm::receive_queue_type::shared_rmp_xrq);
        set(context, prm::qpc::srqn_rmpn_xrqn, parts.srq);
    }
    set(context, prm::qpc::dbr_umem_valid, true);
    set(context, prm::qpc::dbr_umem_id, umem(64, 0).umem);
    return input;
}

mailbox<prm::create_dct_in> commander::dct_input(std::uint64_t access_key)
{
    mailbox<prm::create_dct_in> input;
    const auto context = (*input).at(prm::create_dct_in::dct_context);
    set(*input, prm::create_dct_in::opcode, command::create_dct);
    set(context, prm::dctc::pd, alloc_pd());
    set(context, prm::dctc::cqn, create_cq());
    set(context, prm::dctc::srqn_xrqn, create_srq());
    set(context, prm::dctc::dc_access_key, access_key);
    set(context, prm::dctc::rre, true);
    set(context, prm::dctc::rwe, true);
    set(context, prm::dctc::mtu, prm::path_mtu::bytes_2048);
    set(context, prm::dctc::port, 1U);
    set(context, prm::dctc::min_rnr_nak, 12U);
    return input;
}

std::uint32_t commander::create_dct(std::uint64_t access_key)
{
    auto input                  = dct_input(access_key);
    const command_status status = send(input);
    return must(status, out<prm::create_dct_out>().get(prm::create_dct_out::dctn));
}

std::uint32_t commander::create_qp(qp_parts parts)
{
    auto input                  = qp_input(parts);
    const command_status status = send(input);
    return must(status, out<prm::create_qp_out>().get(prm::create_qp_out::qpn));
}

mailbox<prm::create_mkey_in> commander::key_input(std::uint32_t pd, std::span<std::byte> memory)
{
    mailbox<prm::create_mkey_in> input;
    const auto context = (*input).at(prm::create_mkey_in::memory_key);
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    const auto umem    = _process.device().create_umem(_function, _uid, address, memory.size(), 1);
    set(*input, prm::create_mkey_in::opcode, command::create_mkey);
    set(*input, prm::create_mkey_in::mkey_umem_valid, true);
    set(*input, prm::create_mkey_in::mkey_umem_id, umem ? *umem : must(umem.error(), 0));
    prm::set_access_mode(context, prm::mkey_access_mode::mtt);
    set(context, prm::mkc::lr, true);
    set(context, prm::mkc::lw, true);
    set(context, prm::mkc::rr, true);
    set(context, prm::mkc::rw, true);
    set(context, prm::mkc::a, true);
    set(context, prm::mkc::qpn, prm::any_qpn);
    set(context, prm::mkc::pd, pd);
    set(context, prm::mkc::start_addr, address);
    set(context, prm::mkc::len, memory.size());
    return input;
}

std::uint32_t commander::create_key(std::uint32_t pd, std::span<std::byte> memory, std::uint8_t variant)
{
    auto input = key_input(pd, memory);
    (*input).at(prm::create_mkey_in::memory_key).put(prm::mkc::mkey_7_0, variant);
    const command_status status = send(input);
    return must(status, out<prm::create_mkey_out>().get(prm::create_mkey_out::mkey_index) << 8 | variant);
}

mailbox<prm::create_mkey_in> commander::klm_input(std::uint32_t pd, std::span<const std::byte> entries,
                                                  std::uint32_t room)
{
    mailbox<prm::create_mkey_in> input;
    input.bytes.reserve(input.bytes.size() + entries.size());
    std::ranges::copy(entries, std::back_inserter(input.bytes));
    const auto context = (*input).at(prm::create_mkey_in::memory_key);
    set(*input, prm::create_mkey_in::opcode, command::create_mkey);
    set(*input, prm::create_mkey_in::translations_octword_actual_size, entries.size() / 16);
    prm::set_access_mode(context, prm::mkey_access_mode::klm);
    set(context, prm::mkc::free, entries.empty());
    set(context, prm::mkc::umr_en, true);
    set(context, prm::mkc::lr, true);
    set(context, prm::mkc::qpn, prm::any_qpn);
    set(context, prm::mkc::pd, pd);
    set(context, prm::mkc::len, std::uint64_t{4096});
    set(context, prm::mkc::translations_octword_size, room);
    return input;
}

mailbox<prm::modify_qp_in> commander::transition(command opcode, std::uint32_t qpn, std::uint16_t lid,
                                                 std::uint32_t peer)
{
    mailbox<prm::modify_qp_in> input;
    const auto context = (*input).at(prm::modify_qp_in::qpc);
    const auto path    = context.at(prm::qpc::primary_address_path);
    set(*input, prm::modify_qp_in::opcode, opcode);
    set(*input, prm::modify_qp_in::qpn, qpn);
    set(context, prm::qpc::pm_state, prm::path_migration::migrated);
    set(context, prm::qpc::mtu, prm::path_mtu::bytes_4096);
    set(context, prm::qpc::log_msg_max, 30U);
    set(context, prm::qpc::remote_qpn, peer);
    set(context, prm::qpc::rre, true);
    set(context, prm::qpc::rwe, true);
    set(context, prm::qpc::rae, true);
    set(context, prm::qpc::atomic_mode, prm::atomic_mode::up_to_8b);
    set(context, prm::qpc::log_rra_max, 4U);
    set(context, prm::qpc::log_sra_max, 4U);
    set(context, prm::qpc::retry_count, 7U);
    set(context, prm::qpc::rnr_retry, 7U);
    set(context, prm::qpc::min_rnr_nak, 12U);
    set(path, prm::ads::vhca_port_num, 1U);
    set(path, prm::ads::rlid, lid);
    set(path, prm::ads::ack_timeout, 14U);
    return input;
}

void commander::connect(std::uint32_t qpn, std::uint16_t lid, std::uint32_t peer)
{
    for (const command step : {command::rst2init_qp, command::init2rtr_qp, command::rtr2rts_qp}) {
        auto input = transition(step, qpn, lid, peer);
        must(send(input), 0);
    }
}

} // namespace ucxl::softhca::test
