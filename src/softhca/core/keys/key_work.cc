#include "key_work.h"

#include <optional>
#include <utility>

#include "memory_transfer.h"
#include "prm/send_wqe.h"
#include "softhca/core/arena/fault_plan.h"
#include "translation_list.h"

namespace ucxl::softhca
{

namespace
{

using prm::cqe_syndrome;
using prm::mkc;
using prm::umr_mask;
using umr_control = prm::wqe_umr_control_segment;

// In entries: counts and offsets of a list are multiples of 64 bytes.
constexpr unsigned entries_alignment = 4;

constexpr std::uint64_t known_mask =
    std::to_underlying(umr_mask::len) | std::to_underlying(umr_mask::page_size) |
    std::to_underlying(umr_mask::start_addr) | std::to_underlying(umr_mask::pd) |
    std::to_underlying(umr_mask::en_rinval) | std::to_underlying(umr_mask::bsf_enable) |
    std::to_underlying(umr_mask::key) | std::to_underlying(umr_mask::qpn) | std::to_underlying(umr_mask::local_read) |
    std::to_underlying(umr_mask::local_write) | std::to_underlying(umr_mask::remote_read) |
    std::to_underlying(umr_mask::remote_write) | std::to_underlying(umr_mask::atomic) |
    std::to_underlying(umr_mask::small_fence) | std::to_underlying(umr_mask::relaxed_ordering_write) |
    std::to_underlying(umr_mask::free) | std::to_underlying(umr_mask::relaxed_ordering_read);

// The segments of a UMR. All but the entries are set once it was parsed.
struct umr_request {
    std::uint32_t key_index = 0;
    std::span<const std::byte> control;
    std::span<const std::byte> context;
    std::span<const std::byte> entries; // inline
    std::span<const std::byte> pointer;

    prm::const_view<umr_control> controls() const
    {
        return prm::const_view<umr_control>(control.first<umr_control::size_bytes>());
    }

    prm::const_view<mkc> fields() const { return prm::const_view<mkc>(context.first<mkc::size_bytes>()); }

    bool names(umr_mask field) const
    {
        return (std::to_underlying(controls().get(umr_control::mkey_mask)) & std::to_underlying(field)) != 0;
    }
};

std::optional<umr_request> parse(std::span<const std::byte> wqe)
{
    umr_request found;
    prm::send_wqe_walk walk(wqe, prm::qp_service::rc);
    while (const auto segment = walk.next()) {
        switch (segment->kind) {
        case prm::segment_kind::control: {
            const auto control = prm::const_view<prm::wqe_control_segment>::over(segment->bytes);
            if (!control || control->get(prm::wqe_control_segment::opcode) != prm::wqe_opcode::umr) {
                return std::nullopt;
            }
            found.key_index = control->get(prm::wqe_control_segment::imm) >> 8;
            break;
        }
        case prm::segment_kind::umr_control:
            found.control = segment->bytes;
            break;
        case prm::segment_kind::key_context:
            found.context = segment->bytes;
            break;
        case prm::segment_kind::klm_entries:
        case prm::segment_kind::repeat_block:
            found.entries = segment->bytes;
            break;
        case prm::segment_kind::pointer:
            found.pointer = segment->bytes;
            break;
        default:
            break;
        }
    }
    if (walk.fault() != prm::wqe_fault::none || found.control.empty() || found.context.empty()) {
        return std::nullopt;
    }
    return found;
}

bool may_change(const mkey_record& key, const qp_record& qp)
{
    return key.owner.function == qp.owner.function && key.umr_en && key.pd == qp.pd &&
           (key.mode == prm::mkey_access_mode::klm || key.mode == prm::mkey_access_mode::ksm);
}

bool usable_by(const mkey_record& key, std::uint32_t qpn)
{
    return key.qpn == prm::any_qpn || key.qpn == qpn;
}

std::uint32_t list_offset(const umr_request& request)
{
    const auto control = request.controls();
    return control.get(umr_control::translation_offset_en) ? control.get(umr_control::translation_offset) : 0;
}

// Whether the device would execute the UMR on that key, given room for the entries.
bool acceptable(const umr_request& request, const card& card, const mkey_record& key, const qp_record& qp,
                std::uint32_t qpn)
{
    const auto control       = request.controls();
    const auto context       = request.fields();
    const std::uint64_t mask = std::to_underlying(control.get(umr_control::mkey_mask));
    const bool has_signature =
        !control.get(umr_control::translation_offset_en) && control.get(umr_control::bsf_octowords) != 0;
    const bool wants_signature = request.names(umr_mask::bsf_enable) && context.get(mkc::bsf_en);
    if ((mask & ~known_mask) != 0 || has_signature || wants_signature) {
        return false;
    }
    if ((control.get(umr_control::check_free) && !key.free) ||
        (control.get(umr_control::check_qpn) && !usable_by(key, qpn))) {
        return false;
    }
    if (request.names(umr_mask::pd) && context.get(mkc::pd) != qp.pd) {
        return false;
    }
    // Linux looks at the mask alone (umr_check_mkey_mask), and nobody says whether a card does.
    const bool leaves_atomic_right = card.takes_unset_atomic_bit && context.get(mkc::a) == key.remote_atomic;
    if (request.names(umr_mask::atomic) && !card.umr_modifies_atomic && !leaves_atomic_right) {
        return false;
    }
    return control.get(umr_control::klm_octowords) % entries_alignment == 0 &&
           list_offset(request) % entries_alignment == 0;
}

bool moves_start(const umr_request& request, const mkey_record& key)
{
    return request.names(umr_mask::start_addr) && request.fields().get(mkc::start_addr) != key.start_addr;
}

void apply(const umr_request& request, mkey_record& key)
{
    const auto context = request.fields();
    const auto set     = [&](umr_mask named, auto& place, auto value) {
        if (request.names(named)) {
            place = value;
        }
    };
    set(umr_mask::len, key.len, context.get(mkc::len));
    // libmlx5 does not initialise this bit when it binds a window, so it is honoured only when the length is 0.
    set(umr_mask::len, key.length64, context.get(mkc::length64) && context.get(mkc::len) == 0);
    set(umr_mask::page_size, key.log_entity_size, context.get(mkc::log_entity_size));
    set(umr_mask::start_addr, key.start_addr, context.get(mkc::start_addr));
    set(umr_mask::en_rinval, key.remote_invalidate, context.get(mkc::en_rinval));
    set(umr_mask::key, key.variant, context.get(mkc::mkey_7_0));
    set(umr_mask::qpn, key.qpn, context.get(mkc::qpn));
    set(umr_mask::local_read, key.local_read, context.get(mkc::lr));
    set(umr_mask::local_write, key.local_write, context.get(mkc::lw));
    set(umr_mask::remote_read, key.remote_read, context.get(mkc::rr));
    set(umr_mask::remote_write, key.remote_write, context.get(mkc::rw));
    set(umr_mask::atomic, key.remote_atomic, context.get(mkc::a));
    set(umr_mask::free, key.free, context.get(mkc::free));
    set(umr_mask::relaxed_ordering_write, key.relaxed_writes, context.get(mkc::relaxed_ordering_write));
}

bool refuses_list(environment& device, std::span<const std::byte> entries)
{
    return is_repeat_block(entries) &&
           (!device.memory.card.repeat_blocks || refuses(device.memory, refusable::umr_repeat_block));
}

cqe_syndrome store_from_pointer(environment& device, const qp_record& qp, std::uint32_t qpn, const umr_request& request,
                                mkey_record& key)
{
    const prm::const_view<prm::wqe_pointer_segment> pointer(
        request.pointer.first<prm::wqe_pointer_segment::size_bytes>());
    // "The address of the UMR pointer must be aligned to 2KB" (DPDK's mlx5_prm.h, UCC's tl/mlx5, MLX5_UMR_ALIGN of
    // Linux).
    if (pointer.get(prm::wqe_pointer_segment::addr) % device.memory.card.list_alignment != 0 ||
        refuses(device.memory, refusable::umr_pointer)) {
        return cqe_syndrome::memory_window_bind;
    }
    const std::uint32_t count        = request.controls().get(umr_control::klm_octowords);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(device.memory.read_entries).first(count));
    const reference to{.length = bytes.size(), .data = bytes.data()};
    const reference from{.key     = pointer.get(prm::wqe_pointer_segment::mkey),
                         .address = pointer.get(prm::wqe_pointer_segment::addr),
                         .length  = bytes.size()};
    const key_user user{qp.owner.function, qp.pd, qpn};
    const transfer_result read =
        transfer(device, {user, right::local_write, {&to, 1}}, {user, right::local_read, {&from, 1}}, bytes.size());
    if (read.result != transfer_result::outcome::done) {
        return cqe_syndrome::local_protection;
    }
    if (refuses_list(device, bytes) || !store_translations(device.memory, key, list_offset(request), bytes)) {
        return cqe_syndrome::memory_window_bind;
    }
    device.memory.counts.umr_pointer_entries += count;
    return no_syndrome;
}

cqe_syndrome store_inline(environment& device, const umr_request& request, mkey_record& key)
{
    if (refuses_list(device, request.entries) ||
        !store_translations(device.memory, key, list_offset(request), request.entries)) {
        return cqe_syndrome::memory_window_bind;
    }
    device.memory.counts.umr_inline_entries += request.controls().get(umr_control::klm_octowords);
    return no_syndrome;
}

} // namespace

cqe_syndrome execute_umr(environment& device, const qp_record& qp, std::uint32_t qpn, std::span<const std::byte> wqe,
                         umr_part part)
{
    const auto request = parse(wqe);
    if (!request) {
        return cqe_syndrome::local_qp_operation;
    }
    mkey_record* const key = device.memory.mkeys.find(request->key_index);
    if (key == nullptr || !may_change(*key, qp) || !acceptable(*request, device.memory.card, *key, qp, qpn)) {
        return cqe_syndrome::memory_window_bind;
    }
    if ((moves_start(*request, *key) && refuses(device.memory, refusable::umr_start_addr)) ||
        (request->names(umr_mask::atomic) && refuses(device.memory, refusable::umr_atomic_right))) {
        return cqe_syndrome::memory_window_bind;
    }
    const cqe_syndrome stored = !request->pointer.empty() ? store_from_pointer(device, qp, qpn, *request, *key)
                                                          : store_inline(device, *request, *key);
    if (stored == no_syndrome && part == umr_part::all) {
        apply(*request, *key);
    }
    return stored;
}

cqe_syndrome invalidate_key(environment& device, const qp_record& qp, std::uint32_t qpn, std::uint32_t key, bool remote)
{
    mkey_record* const found = device.memory.find_key(key);
    const bool allowed =
        found != nullptr && may_change(*found, qp) && usable_by(*found, qpn) && (!remote || found->remote_invalidate);
    if (!allowed) {
        return remote ? cqe_syndrome::remote_access : cqe_syndrome::memory_window_bind;
    }
    found->free = true;
    return no_syndrome;
}

} // namespace ucxl::softhca
