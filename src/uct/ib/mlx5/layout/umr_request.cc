#include "umr_request.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <utility>

#include "prm/mkey.h"
#include "prm/umr.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::size_t entry_bytes = 16;
constexpr std::size_t group_bytes = 64;
constexpr std::size_t header_bytes =
    prm::wqe_control_segment::size_bytes + prm::wqe_umr_control_segment::size_bytes + prm::mkc::size_bytes;

constexpr std::size_t padded(std::size_t bytes)
{
    return (bytes + group_bytes - 1) / group_bytes * group_bytes;
}

std::unexpected<error> too_wide(std::string_view field, std::uint64_t value, unsigned bits)
{
    return fail(errc::exceeds_limit, std::format("{} {} does not fit in its {} bits", field, value, bits));
}

std::uint64_t operator|(std::uint64_t bits, prm::umr_mask more)
{
    return bits | std::to_underlying(more);
}

template <typename Structure>
prm::view<Structure> take(std::span<std::byte>& left)
{
    const prm::view<Structure> taken(left.first<Structure::size_bytes>());
    left = left.subspan(Structure::size_bytes);
    return taken;
}

result<void> encode_repeat_block(std::uint32_t repeat_count, std::span<const resolved_entry> entries,
                                 std::span<std::byte> out)
{
    const auto header      = take<prm::repeat_block_header>(out);
    std::uint64_t per_turn = 0;
    for (const resolved_entry& entry : entries) {
        per_turn += entry.length;
        const auto place = take<prm::repeat_block_entry>(out);
        if (!place.set(prm::repeat_block_entry::stride, entry.stride)) {
            return too_wide("stride", entry.stride, 16);
        }
        if (!place.set(prm::repeat_block_entry::byte_count, entry.length)) {
            return too_wide("length of a block", entry.length, 16);
        }
        place.put(prm::repeat_block_entry::mkey, entry.key);
        place.put(prm::repeat_block_entry::va, entry.address);
    }
    if (!header.set(prm::repeat_block_header::byte_count, per_turn)) {
        return too_wide("length of one turn", per_turn, 32);
    }
    if (!header.set(prm::repeat_block_header::num_ent, entries.size())) {
        return too_wide("number of entries", entries.size(), 16);
    }
    header.put<prm::repeat_block_op>(prm::repeat_block_header::op);
    header.put(prm::repeat_block_header::repeat_count, repeat_count);
    return {};
}

result<void> encode_list(key_kind kind, std::span<const resolved_entry> entries, std::span<std::byte> out)
{
    for (const resolved_entry& entry : entries) {
        const auto place = take<prm::klm>(out);
        // All entities of a KSM have the size that its key knows.
        if (kind == key_kind::klm && !place.set(prm::klm::byte_count, entry.length)) {
            return too_wide("length of an entry", entry.length, 32);
        }
        place.put(prm::klm::mkey, entry.key);
        place.put(prm::klm::address, entry.address);
    }
    return {};
}

// Writes the control segment of a zeroed request and returns the rest of the request.
std::span<std::byte> encode_control(prm::wqe_opcode opcode, std::uint32_t qpn, const request_flags& flags,
                                    std::uint32_t imm, std::size_t size, request_bytes& out)
{
    out.size = size;
    std::memset(out.bytes.data(), 0, size);
    std::span<std::byte> left(out.bytes);
    const auto control = take<prm::wqe_control_segment>(left);
    (void)control.set(prm::wqe_control_segment::opcode, opcode);
    (void)control.set(prm::wqe_control_segment::qpn, qpn & 0xffffff);
    (void)control.set(prm::wqe_control_segment::ds, size / prm::wqe_unit_bytes);
    (void)control.set(prm::wqe_control_segment::fence, flags.fence);
    (void)control.set(prm::wqe_control_segment::completion,
                      flags.signaled ? prm::wqe_completion::always : prm::wqe_completion::on_error);
    control.put(prm::wqe_control_segment::imm, imm);
    return left;
}

// Writes everything before the key context.
std::span<std::byte> encode_head(std::uint32_t key, std::uint32_t qpn, const request_flags& flags, std::uint64_t mask,
                                 std::size_t size, request_bytes& out)
{
    std::span<std::byte> left = encode_control(prm::wqe_opcode::umr, qpn, flags, key, size, out);
    const auto umr            = take<prm::wqe_umr_control_segment>(left);
    (void)umr.set(prm::wqe_umr_control_segment::mkey_mask, mask | prm::umr_mask::free | prm::umr_mask::key);
    return left;
}

prm::view<prm::wqe_umr_control_segment> umr_control(request_bytes& out)
{
    return prm::view<prm::wqe_umr_control_segment>(
        std::span(out.bytes).subspan<prm::wqe_control_segment::size_bytes, prm::wqe_umr_control_segment::size_bytes>());
}

std::span<std::byte> encode_bind_head(const bind_request& request, std::uint32_t qpn, const request_flags& flags,
                                      std::size_t size, request_bytes& out)
{
    std::uint64_t mask = 0;
    mask               = mask | prm::umr_mask::len | prm::umr_mask::local_write | prm::umr_mask::remote_read |
           prm::umr_mask::remote_write;
    if (!flags.leaves_atomic_right) {
        mask = mask | prm::umr_mask::atomic;
    }
    if (request.start_address) {
        mask = mask | prm::umr_mask::start_addr;
    }
    std::span<std::byte> left = encode_head(request.key, qpn, flags, mask, size, out);
    const auto context        = take<prm::mkc>(left);
    (void)context.set(prm::mkc::lw, request.rights.local_write ? 1U : 0U);
    (void)context.set(prm::mkc::rr, request.rights.remote_read ? 1U : 0U);
    (void)context.set(prm::mkc::rw, request.rights.remote_write ? 1U : 0U);
    (void)context.set(prm::mkc::a, request.rights.remote_atomic ? 1U : 0U);
    context.put<prm::any_qpn>(prm::mkc::qpn);
    (void)context.set(prm::mkc::mkey_7_0, request.key & 0xff);
    context.put(prm::mkc::len, request.length);
    context.put(prm::mkc::start_addr, request.start_address.value_or(0));
    return left;
}

} // namespace

request_bytes& request_bytes::operator=(const request_bytes& other)
{
    size = other.size;
    std::memcpy(bytes.data(), other.bytes.data(), size);
    return *this;
}

std::size_t entries_bytes(key_kind kind, std::size_t num_entries)
{
    return padded((num_entries + (kind == key_kind::repeat ? 1 : 0)) * entry_bytes);
}

std::size_t max_inline_entries(key_kind kind, std::size_t queue_limit)
{
    const std::size_t limit = std::min(queue_limit, max_request_bytes);
    if (limit < header_bytes) {
        return 0;
    }
    const std::size_t groups = (limit - header_bytes) / group_bytes * (group_bytes / entry_bytes);
    return kind == key_kind::repeat ? groups - std::min<std::size_t>(groups, 1) : groups;
}

result<void> encode_entries(key_kind kind, std::uint32_t repeat_count, std::span<const resolved_entry> entries,
                            std::span<std::byte> out)
{
    std::ranges::fill(out, std::byte{0});
    return kind == key_kind::repeat ? encode_repeat_block(repeat_count, entries, out) : encode_list(kind, entries, out);
}

void encode_bind(const bind_request& request, std::uint32_t qpn, const request_flags& flags,
                 std::span<const std::byte> inline_entries, request_bytes& out)
{
    const std::span<std::byte> rest = encode_bind_head(request, qpn, flags, header_bytes + inline_entries.size(), out);
    std::ranges::copy(inline_entries, rest.begin());
    umr_control(out).put<1U>(prm::wqe_umr_control_segment::inline_entries);
    (void)umr_control(out).set(prm::wqe_umr_control_segment::klm_octowords, inline_entries.size() / entry_bytes);
}

bool encode_bind_by_pointer(const bind_request& request, std::uint32_t qpn, const request_flags& flags,
                            std::size_t entry_bytes_in_memory, std::uint32_t lkey, std::uint64_t address,
                            request_bytes& out)
{
    std::span<std::byte> rest =
        encode_bind_head(request, qpn, flags, header_bytes + prm::wqe_pointer_segment::size_bytes, out);
    const auto pointer = take<prm::wqe_pointer_segment>(rest);
    pointer.put(prm::wqe_pointer_segment::mkey, lkey);
    pointer.put(prm::wqe_pointer_segment::addr, address);
    return umr_control(out).set(prm::wqe_umr_control_segment::klm_octowords, entry_bytes_in_memory / entry_bytes);
}

void encode_invalidate(std::uint32_t key, std::uint32_t qpn, const request_flags& flags, request_bytes& out)
{
    std::span<std::byte> rest = encode_head(key, qpn, flags, 0, header_bytes, out);
    const auto context        = take<prm::mkc>(rest);
    context.put<1U>(prm::mkc::free);
    context.put<prm::any_qpn>(prm::mkc::qpn);
    (void)context.set(prm::mkc::mkey_7_0, key & 0xff);
    umr_control(out).put<1U>(prm::wqe_umr_control_segment::inline_entries);
}

void encode_key_fence(std::uint32_t qpn, const request_flags& flags, request_bytes& out)
{
    request_flags fenced = flags;
    fenced.fence         = prm::wqe_fence::initiator_small;
    encode_control(prm::wqe_opcode::nop, qpn, fenced, 0, prm::wqe_control_segment::size_bytes, out);
}

std::string needs_of(const request_bytes& request)
{
    request_bytes copy = request;
    std::span<std::byte> left(copy.bytes);
    const auto control = take<prm::wqe_control_segment>(left);
    if (control.get(prm::wqe_control_segment::opcode) != prm::wqe_opcode::umr) {
        return "fence";
    }
    const auto umr     = take<prm::wqe_umr_control_segment>(left);
    const auto context = take<prm::mkc>(left);
    if (context.get(prm::mkc::free)) {
        return "invalidation";
    }
    const bool in_memory = !umr.get(prm::wqe_umr_control_segment::inline_entries);
    const bool repeats   = !in_memory && request.size >= header_bytes + prm::repeat_block_header::size_bytes &&
                         take<prm::repeat_block_header>(left).get(prm::repeat_block_header::op) == prm::repeat_block_op;
    const auto mask  = std::to_underlying(umr.get(prm::wqe_umr_control_segment::mkey_mask));
    std::string text = in_memory ? "list in memory" : repeats ? "repeat block" : "list";
    if ((mask & std::to_underlying(prm::umr_mask::start_addr)) != 0) {
        text += ", start address";
    }
    if ((mask & std::to_underlying(prm::umr_mask::atomic)) != 0) {
        text += ", atomic right";
    }
    return text;
}

} // namespace ucxl::mlx5
