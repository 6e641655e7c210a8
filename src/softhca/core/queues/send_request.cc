#include "send_request.h"

#include "connection.h"

namespace ucxl::softhca
{

namespace
{

using prm::const_view;
using prm::qp_service;
using prm::segment_kind;
using prm::wqe_opcode;

void parse_control(send_request& request, std::span<const std::byte> segment)
{
    using control = prm::wqe_control_segment;
    const const_view<control> view(segment.first<control::size_bytes>());
    request.opcode     = view.get(control::opcode);
    request.op_mod     = view.get(control::op_mod);
    request.completion = view.get(control::completion);
    request.fence      = view.get(control::fence);
    request.solicited  = view.get(control::solicited);
    request.imm        = view.get(control::imm);
    request.stream     = view.get(control::dci_stream_channel_id);
}

void parse_remote(send_request& request, std::span<const std::byte> segment)
{
    using remote = prm::wqe_remote_address_segment;
    const const_view<remote> view(segment.first<remote::size_bytes>());
    request.remote_address = view.get(remote::raddr);
    request.remote_key     = view.get(remote::rkey);
}

bool add_data(send_request& request, std::span<const std::byte> segment)
{
    using data = prm::wqe_data_segment;
    const const_view<data> view(segment.first<data::size_bytes>());
    return request.data.add({view.get(data::lkey), view.get(data::addr), view.get(data::byte_count), nullptr});
}

bool add_inline(send_request& request, std::span<const std::byte> segment)
{
    const auto bytes = segment.subspan(prm::wqe_inline_segment::size_bytes);
    return bytes.empty() || request.data.add({0, 0, bytes.size(), const_cast<std::byte*>(bytes.data())});
}

// The operations of each service. Datagrams support sends only; reads, atomics and remote invalidation need
// acknowledgements.
bool carried_by(qp_service service, wqe_opcode opcode)
{
    switch (opcode) {
    case wqe_opcode::nop:
    case wqe_opcode::send:
    case wqe_opcode::send_imm:
        return true;
    case wqe_opcode::rdma_write:
    case wqe_opcode::rdma_write_imm:
    case wqe_opcode::local_invalidate:
    case wqe_opcode::umr:
        return service == qp_service::rc || service == qp_service::uc || service == qp_service::dci;
    case wqe_opcode::send_invalidate:
    case wqe_opcode::rdma_read:
    case wqe_opcode::atomic_cs:
    case wqe_opcode::atomic_fa:
    case wqe_opcode::atomic_masked_cs:
    case wqe_opcode::atomic_masked_fa:
        return is_reliable(service);
    case wqe_opcode::tso:
    case wqe_opcode::wait:
    case wqe_opcode::receive_enable:
    case wqe_opcode::send_enable:
    case wqe_opcode::fmr:
    case wqe_opcode::config_command:
    case wqe_opcode::set_psv:
    case wqe_opcode::get_psv:
    case wqe_opcode::check_psv:
    case wqe_opcode::dump:
    case wqe_opcode::tag_matching:
    case wqe_opcode::flow_table_access:
    case wqe_opcode::mmo:
        break;
    }
    return false;
}

bool parse_segment(send_request& request, const prm::wqe_segment& segment)
{
    switch (segment.kind) {
    case segment_kind::control:
        parse_control(request, segment.bytes);
        return true;
    case segment_kind::compact_address_vector:
    case segment_kind::address_vector:
        request.address = segment.bytes;
        return true;
    case segment_kind::remote_address:
        parse_remote(request, segment.bytes);
        return true;
    case segment_kind::atomic:
    case segment_kind::masked_swap:
    case segment_kind::masked_add:
    case segment_kind::masked_swap32:
    case segment_kind::masked_add32:
        request.atomic_kind = segment.kind;
        request.atomic      = segment.bytes;
        return true;
    case segment_kind::data:
        return add_data(request, segment.bytes);
    case segment_kind::inline_data:
        return add_inline(request, segment.bytes);
    case segment_kind::umr_control:
    case segment_kind::key_context:
    case segment_kind::pointer:
    case segment_kind::klm_entries:
    case segment_kind::repeat_block:
    case segment_kind::signature_format:
    case segment_kind::unknown:
        return true; // key_work.h parses UMRs; a NOP has no meaningful content
    case segment_kind::xrc_target:
    case segment_kind::wait:
    case segment_kind::set_psv:
    case segment_kind::get_psv:
    case segment_kind::mmo_metadata:
    case segment_kind::ethernet:
        break;
    }
    return false;
}

} // namespace

void parse_send_wqe(send_request& request, std::span<std::byte> wqe, qp_service service)
{
    request.wqe = wqe;
    prm::send_wqe_walk walk(wqe, service);
    while (const auto segment = walk.next()) {
        if (!parse_segment(request, *segment)) {
            return;
        }
    }
    request.understood = !wqe.empty() && walk.fault() == prm::wqe_fault::none && carried_by(service, request.opcode);
}

} // namespace ucxl::softhca
