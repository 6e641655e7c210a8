#include <algorithm>

#include "decode.h"
#include "send_wqe.h"
#include "text.h"

namespace ucxl::prm
{

namespace
{

void append_inline(std::string& result, text::bytes segment)
{
    text::append_bytes(result, "inline", segment.subspan(wqe_inline_segment::size_bytes), 1);
    if (segment.size() == wqe_inline_segment::size_bytes) {
        result += "  inline: 0 bytes\n";
    }
}

void append_repeat_block(std::string& result, text::bytes segment)
{
    text::append_structure(result, "repeat", info_of<repeat_block_header>, segment, 1);
    text::append_list(result, "entry", info_of<repeat_block_entry>, segment.subspan(repeat_block_header::size_bytes),
                      2);
}

void append_segment(std::string& result, const wqe_segment& segment)
{
    const auto bytes = segment.bytes;
    const auto part  = [&](std::string_view label, const structure_info& info) {
        text::append_structure(result, label, info, bytes, 1);
    };
    switch (segment.kind) {
    case segment_kind::control:
        return part("control", info_of<wqe_control_segment>);
    case segment_kind::compact_address_vector:
        return part("address", info_of<wqe_compact_address_vector>);
    case segment_kind::address_vector:
        return part("address", info_of<wqe_address_vector>);
    case segment_kind::xrc_target:
        return part("xrc", info_of<wqe_xrc_segment>);
    case segment_kind::remote_address:
        return part("remote", info_of<wqe_remote_address_segment>);
    case segment_kind::atomic:
        return part("atomic", info_of<wqe_atomic_segment>);
    case segment_kind::masked_swap:
        return part("masked_swap", info_of<wqe_masked_swap_segment>);
    case segment_kind::masked_add:
        return part("masked_add", info_of<wqe_masked_add_segment>);
    case segment_kind::masked_swap32:
        return part("masked_swap32", info_of<wqe_masked_swap32_segment>);
    case segment_kind::masked_add32:
        return part("masked_add32", info_of<wqe_masked_add32_segment>);
    case segment_kind::data:
        return part("data", info_of<wqe_data_segment>);
    case segment_kind::inline_data:
        return append_inline(result, bytes);
    case segment_kind::umr_control:
        return part("umr", info_of<wqe_umr_control_segment>);
    case segment_kind::key_context:
        return part("key", info_of<mkc>);
    case segment_kind::pointer:
        return part("entries_at", info_of<wqe_pointer_segment>);
    case segment_kind::klm_entries:
        return text::append_list(result, "klm", info_of<klm>, bytes, 1);
    case segment_kind::repeat_block:
        return append_repeat_block(result, bytes);
    case segment_kind::signature_format:
        return text::append_bytes(result, "bsf", bytes, 1);
    case segment_kind::wait:
        return part("wait", info_of<wqe_wait_segment>);
    case segment_kind::set_psv:
        return part("set_psv", info_of<wqe_set_psv_segment>);
    case segment_kind::get_psv:
        return part("get_psv", info_of<wqe_get_psv_segment>);
    case segment_kind::mmo_metadata:
        return part("mmo", info_of<wqe_mmo_metadata_segment>);
    case segment_kind::ethernet:
        return part("ethernet", info_of<wqe_ethernet_segment>);
    case segment_kind::unknown:
        return text::append_bytes(result, "unknown", bytes, 1);
    }
}

void append_title(std::string& result, text::bytes wqe)
{
    const auto control = const_view<wqe_control_segment>::over(wqe);
    const auto name    = control ? name_of(control->get(wqe_control_segment::opcode)) : std::string_view{};
    result += "send wqe ";
    result += name.empty() ? "unknown" : name;
    result += ":\n";
}

} // namespace

std::string decode_wqe(std::span<const std::byte> wqe, qp_service service)
{
    std::string to;
    append_title(to, wqe);
    send_wqe_walk walk(wqe, service);
    std::size_t seen = 0;
    while (const auto segment = walk.next()) {
        append_segment(to, *segment);
        seen = static_cast<std::size_t>(segment->bytes.data() - wqe.data()) + segment->bytes.size();
    }
    if (walk.fault() == wqe_fault::none) {
        return to;
    }
    to += walk.fault() == wqe_fault::truncated ? "  longer than the bytes at hand\n"
                                               : "  a segment is missing or cut short\n";
    text::append_bytes(to, "bytes", wqe.subspan(seen), 1);
    return to;
}

std::string decode_receive_wqe(std::span<const std::byte> wqe, bool shared)
{
    std::string to = "receive wqe:\n";
    if (shared) {
        text::append_structure(to, "next", info_of<wqe_srq_next_segment>, wqe, 1);
        wqe = wqe.subspan(std::min(wqe.size(), wqe_srq_next_segment::size_bytes));
    }
    text::append_list(to, "data", info_of<wqe_data_segment>, wqe, 1);
    return to;
}

} // namespace ucxl::prm
