#include "send_wqe.h"

#include <algorithm>

namespace ucxl::prm
{

namespace
{

bool all_zero(std::span<const std::byte> bytes)
{
    return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

constexpr std::size_t padded(std::size_t bytes)
{
    return (bytes + wqe_unit_bytes - 1) / wqe_unit_bytes * wqe_unit_bytes;
}

// Whether the operands have 4 bytes: an extended atomic of that size.
constexpr bool four_byte_operands(std::uint8_t op_mod)
{
    return op_mod == extended_atomic;
}

} // namespace

send_wqe_walk::send_wqe_walk(std::span<const std::byte> wqe, qp_service service) : _left(wqe), _service(service)
{
}

std::optional<wqe_segment> send_wqe_walk::take(segment_kind kind, std::size_t size, step then)
{
    if (size > _left.size()) {
        _fault = wqe_fault::too_short;
        _left  = {};
        return std::nullopt;
    }
    const wqe_segment segment{kind, _left.first(size)};
    _left = _left.subspan(size);
    _step = then;
    return segment;
}

std::optional<wqe_segment> send_wqe_walk::next()
{
    if (_fault != wqe_fault::none) {
        return std::nullopt;
    }
    switch (_step) {
    case step::control:
        return control();
    case step::address:
        return address();
    case step::remote:
        return take(segment_kind::remote_address, wqe_remote_address_segment::size_bytes, after_address());
    case step::atomic:
        return atomic();
    case step::data:
        return data();
    case step::umr_control:
        return umr_control();
    case step::umr_context:
        return take(segment_kind::key_context, mkc::size_bytes, step::umr_entries);
    case step::umr_entries:
        return umr_entries();
    case step::umr_format:
        // With entries behind a pointer the BSF may be there, too.
        if (_format_bytes != 0 && (_inline_entries || !_left.empty())) {
            return take(segment_kind::signature_format, _format_bytes, step::rest);
        }
        return rest();
    case step::metadata:
        return take(segment_kind::mmo_metadata, wqe_mmo_metadata_segment::size_bytes, step::data);
    case step::ethernet:
        return take(segment_kind::ethernet, wqe_ethernet_segment::size_bytes, step::rest);
    case step::wait:
        return take(segment_kind::wait, wqe_wait_segment::size_bytes, step::rest);
    case step::set_psv:
        return take(segment_kind::set_psv, wqe_set_psv_segment::size_bytes, step::rest);
    case step::get_psv:
        return take(segment_kind::get_psv, wqe_get_psv_segment::size_bytes, step::rest);
    case step::rest:
        return rest();
    }
    return std::nullopt;
}

std::optional<wqe_segment> send_wqe_walk::control()
{
    const auto segment = take(segment_kind::control, wqe_control_segment::size_bytes, step::rest);
    if (!segment) {
        return std::nullopt;
    }
    const const_view<wqe_control_segment> view(segment->bytes.first<wqe_control_segment::size_bytes>());
    const std::size_t size = std::size_t{view.get(wqe_control_segment::ds)} * wqe_unit_bytes;
    if (size < wqe_unit_bytes) {
        _fault = wqe_fault::too_short;
    } else if (size - wqe_unit_bytes > _left.size()) {
        _fault = wqe_fault::truncated;
    } else {
        _left = _left.first(size - wqe_unit_bytes);
    }
    _opcode = view.get(wqe_control_segment::opcode);
    _op_mod = view.get(wqe_control_segment::op_mod);
    _step   = first_step();
    return segment;
}

bool send_wqe_walk::carries_address() const
{
    return _service == qp_service::ud || _service == qp_service::qp0 || _service == qp_service::qp1 ||
           _service == qp_service::dci || _service == qp_service::xrc;
}

send_wqe_walk::step send_wqe_walk::first_step() const
{
    switch (_opcode) {
    case wqe_opcode::send:
    case wqe_opcode::send_imm:
    case wqe_opcode::send_invalidate:
        if (_service == qp_service::raw_datagram) {
            return step::ethernet;
        }
        return carries_address() ? step::address : step::data;
    case wqe_opcode::rdma_write:
    case wqe_opcode::rdma_write_imm:
    case wqe_opcode::rdma_read:
    case wqe_opcode::atomic_cs:
    case wqe_opcode::atomic_fa:
    case wqe_opcode::atomic_masked_cs:
    case wqe_opcode::atomic_masked_fa:
        return carries_address() ? step::address : step::remote;
    case wqe_opcode::umr:
        return step::umr_control;
    case wqe_opcode::mmo:
        return step::metadata;
    case wqe_opcode::tso:
        return step::ethernet;
    case wqe_opcode::wait:
    case wqe_opcode::receive_enable:
    case wqe_opcode::send_enable:
        return step::wait;
    case wqe_opcode::set_psv:
        return step::set_psv;
    case wqe_opcode::get_psv:
        return step::get_psv;
    case wqe_opcode::nop:
    case wqe_opcode::fmr:
    case wqe_opcode::local_invalidate:
    case wqe_opcode::config_command:
    case wqe_opcode::check_psv:
    case wqe_opcode::dump:
    case wqe_opcode::tag_matching:
    case wqe_opcode::flow_table_access:
        break;
    }
    return step::rest;
}

// The segments after the remote address.
send_wqe_walk::step send_wqe_walk::after_address() const
{
    return is_atomic(_opcode) ? step::atomic : step::data;
}

std::optional<wqe_segment> send_wqe_walk::address()
{
    const bool sends =
        _opcode == wqe_opcode::send || _opcode == wqe_opcode::send_imm || _opcode == wqe_opcode::send_invalidate;
    const step then = sends ? step::data : step::remote;
    if (_service == qp_service::xrc) {
        return take(segment_kind::xrc_target, wqe_xrc_segment::size_bytes, then);
    }
    const auto base = const_view<wqe_compact_address_vector>::over(_left);
    if (base && base->get(wqe_compact_address_vector::extended)) {
        return take(segment_kind::address_vector, wqe_address_vector::size_bytes, then);
    }
    return take(segment_kind::compact_address_vector, wqe_compact_address_vector::size_bytes, then);
}

std::optional<wqe_segment> send_wqe_walk::atomic()
{
    const bool short_operands = four_byte_operands(_op_mod);
    if (_opcode == wqe_opcode::atomic_masked_cs) {
        return short_operands ? take(segment_kind::masked_swap32, wqe_masked_swap32_segment::size_bytes, step::data)
                              : take(segment_kind::masked_swap, wqe_masked_swap_segment::size_bytes, step::data);
    }
    if (_opcode == wqe_opcode::atomic_masked_fa) {
        return short_operands ? take(segment_kind::masked_add32, wqe_masked_add32_segment::size_bytes, step::data)
                              : take(segment_kind::masked_add, wqe_masked_add_segment::size_bytes, step::data);
    }
    return take(segment_kind::atomic, wqe_atomic_segment::size_bytes, step::data);
}

std::optional<wqe_segment> send_wqe_walk::data()
{
    if (_left.empty()) {
        return std::nullopt;
    }
    const auto head = const_view<wqe_inline_segment>::over(_left);
    if (!head || !head->get(wqe_inline_segment::in_line)) {
        return take(segment_kind::data, wqe_data_segment::size_bytes, step::data);
    }
    const std::size_t size = wqe_inline_segment::size_bytes + head->get(wqe_inline_segment::byte_count);
    auto segment           = take(segment_kind::inline_data, padded(size), step::data);
    if (segment) {
        segment->bytes = segment->bytes.first(size);
    }
    return segment;
}

std::optional<wqe_segment> send_wqe_walk::umr_control()
{
    const auto segment = take(segment_kind::umr_control, wqe_umr_control_segment::size_bytes, step::umr_context);
    if (!segment) {
        return std::nullopt;
    }
    const const_view<wqe_umr_control_segment> view(segment->bytes.first<wqe_umr_control_segment::size_bytes>());
    _inline_entries = view.get(wqe_umr_control_segment::inline_entries);
    _entries_bytes  = view.get(wqe_umr_control_segment::klm_octowords) * wqe_unit_bytes;
    if (!view.get(wqe_umr_control_segment::translation_offset_en)) {
        _format_bytes = view.get(wqe_umr_control_segment::bsf_octowords) * wqe_unit_bytes;
    }
    return segment;
}

std::optional<wqe_segment> send_wqe_walk::umr_entries()
{
    if (_entries_bytes == 0) {
        _step = step::umr_format;
        return next();
    }
    if (!_inline_entries) {
        return take(segment_kind::pointer, wqe_pointer_segment::size_bytes, step::umr_format);
    }
    const auto header = const_view<repeat_block_header>::over(_left);
    const bool repeat = header && header->get(repeat_block_header::op) == repeat_block_op;
    return take(repeat ? segment_kind::repeat_block : segment_kind::klm_entries, _entries_bytes, step::umr_format);
}

std::optional<wqe_segment> send_wqe_walk::rest()
{
    if (_left.empty() || all_zero(_left)) {
        return std::nullopt;
    }
    return take(segment_kind::unknown, _left.size(), step::rest);
}

} // namespace ucxl::prm
