// Walks the segments of a send WQE, in order, whatever its bytes: nothing outside the WQE is read, and every walk ends.
//
// The opcode, flags in earlier segments and the service of the queue pair (datagrams have an address vector) determine
// the segments; the bytes do not say the service. The WQE must be in one piece: a caller whose send queue wraps copies
// it first. No allocation.
//
//     send_wqe_walk walk(bytes, qp_service::rc);
//     while (auto segment = walk.next())
//         if (segment->kind == segment_kind::data) { auto data = const_view<wqe_data_segment>::over(segment->bytes); }
//     if (walk.fault() != wqe_fault::none) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "qpc.h"
#include "umr.h"
#include "wqe.h"

namespace ucxl::prm
{

enum class segment_kind : std::uint8_t {
    control,
    compact_address_vector,
    address_vector,
    xrc_target,
    remote_address,
    atomic,
    masked_swap,
    masked_add,
    masked_swap32,
    masked_add32,
    data,
    inline_data, // wqe_inline_segment and its bytes, without the padding
    umr_control,
    key_context,      // mkc
    pointer,          // the entries are elsewhere
    klm_entries,      // klm_octowords entries; a KSM looks the same except for the byte count
    repeat_block,     // header and entries
    signature_format, // BSF
    wait,
    set_psv,
    get_psv,
    mmo_metadata,
    ethernet,
    unknown, // not a segment that this opcode has, except padding
};

struct wqe_segment {
    segment_kind kind;
    std::span<const std::byte> bytes;
};

enum class wqe_fault : std::uint8_t {
    none,
    truncated, // its `ds` says more than the bytes given
    too_short, // a required segment is missing or incomplete
};

class send_wqe_walk
{
public:
    send_wqe_walk(std::span<const std::byte> wqe, qp_service service);

    // The next segment, or nothing at the end or at a fault.
    std::optional<wqe_segment> next();

    wqe_fault fault() const { return _fault; }

private:
    enum class step : std::uint8_t {
        control,
        address,
        remote,
        atomic,
        data,
        umr_control,
        umr_context,
        umr_entries,
        umr_format,
        metadata,
        ethernet,
        wait,
        set_psv,
        get_psv,
        rest,
    };

    std::optional<wqe_segment> take(segment_kind kind, std::size_t size, step then);
    std::optional<wqe_segment> control();
    std::optional<wqe_segment> address();
    std::optional<wqe_segment> atomic();
    std::optional<wqe_segment> data();
    std::optional<wqe_segment> umr_control();
    std::optional<wqe_segment> umr_entries();
    std::optional<wqe_segment> rest();
    step first_step() const;
    step after_address() const;
    bool carries_address() const;

    std::span<const std::byte> _left;
    qp_service _service;
    step _step                 = step::control;
    wqe_opcode _opcode         = wqe_opcode::nop;
    std::uint8_t _op_mod       = 0;
    bool _inline_entries       = false;
    std::size_t _entries_bytes = 0;
    std::size_t _format_bytes  = 0;
    wqe_fault _fault           = wqe_fault::none;
};

} // namespace ucxl::prm
