#include "work_request.h"

#include <algorithm>
#include <stdexcept>

namespace ucxl::softhca::test
{

using prm::wqe_control_segment;

namespace
{

template <typename View, typename Field, typename Value>
void must_set(View view, Field field, Value value)
{
    if (!view.set(field, value)) {
        throw std::invalid_argument("too large for its field");
    }
}

} // namespace

work_request::work_request(prm::wqe_opcode opcode, std::uint8_t op_mod)
{
    segment<wqe_control_segment>([&](auto view) {
        must_set(view, wqe_control_segment::opcode, opcode);
        must_set(view, wqe_control_segment::op_mod, op_mod);
    });
}

work_request& work_request::completion(prm::wqe_completion when)
{
    must_set(control(), wqe_control_segment::completion, when);
    return *this;
}

work_request& work_request::fence(prm::wqe_fence kind)
{
    (void)control().set(prm::wqe_control_segment::fence, kind);
    return *this;
}

work_request& work_request::solicited()
{
    control().put<true>(wqe_control_segment::solicited);
    return *this;
}

work_request& work_request::imm(std::uint32_t value)
{
    control().put(wqe_control_segment::imm, value);
    return *this;
}

work_request& work_request::remote(std::uint64_t address, std::uint32_t rkey)
{
    using s = prm::wqe_remote_address_segment;
    return segment<s>([&](auto view) {
        view.put(s::raddr, address);
        view.put(s::rkey, rkey);
    });
}

work_request& work_request::data(std::uint32_t lkey, std::uint64_t address, std::uint32_t length)
{
    using s = prm::wqe_data_segment;
    return segment<s>([&](auto view) {
        must_set(view, s::byte_count, length);
        view.put(s::lkey, lkey);
        view.put(s::addr, address);
    });
}

work_request& work_request::inline_data(std::span<const std::byte> bytes)
{
    using s = prm::wqe_inline_segment;
    segment<s>([&](auto view) {
        view.template put<true>(s::in_line);
        must_set(view, s::byte_count, bytes.size());
    });
    _bytes.insert(_bytes.end(), bytes.begin(), bytes.end());
    _bytes.resize((_bytes.size() + 15) / 16 * 16);
    return *this;
}

work_request& work_request::fetch_add(std::uint64_t add)
{
    using s = prm::wqe_atomic_segment;
    return segment<s>([&](auto view) { view.put(s::swap_add, add); });
}

work_request& work_request::compare_swap(std::uint64_t compare, std::uint64_t swap)
{
    using s = prm::wqe_atomic_segment;
    return segment<s>([&](auto view) {
        view.put(s::swap_add, swap);
        view.put(s::compare, compare);
    });
}

namespace
{

void fill(prm::view<prm::wqe_compact_address_vector> view, std::uint16_t lid, std::uint32_t qpn, std::uint32_t qkey)
{
    using s = prm::wqe_compact_address_vector;
    view.put(s::qkey, qkey);
    must_set(view, s::destination_qpn, qpn);
    view.put(s::rlid, lid);
}

} // namespace

work_request& work_request::address(std::uint16_t lid, std::uint32_t qpn, std::uint32_t qkey)
{
    using s = prm::wqe_address_vector;
    return segment<s>([&](auto view) {
        fill(view.at(s::compact), lid, qpn, qkey);
        view.at(s::compact).template put<true>(prm::wqe_compact_address_vector::extended);
    });
}

work_request& work_request::address(std::uint16_t lid, std::uint32_t qpn, std::uint32_t qkey,
                                    std::span<const std::byte, 16> gid)
{
    using s = prm::wqe_address_vector;
    return segment<s>([&](auto view) {
        fill(view.at(s::compact), lid, qpn, qkey);
        view.at(s::compact).template put<true>(prm::wqe_compact_address_vector::extended);
        view.template put<true>(s::grh);
        must_set(view, s::hop_limit, 64);
        must_set(view, s::tclass, 3);
        must_set(view, s::flow_label, 0x12345);
        std::ranges::copy(gid, view.at(s::rgid).begin());
    });
}

work_request& work_request::target(std::uint16_t lid, std::uint32_t dctn, std::uint64_t access_key)
{
    using s = prm::wqe_compact_address_vector;
    return segment<s>([&](auto view) {
        fill(view, lid, dctn, 0);
        view.put(s::dc_key, access_key);
    });
}

work_request& work_request::target(std::uint16_t lid, std::uint32_t dctn, std::uint64_t access_key,
                                   std::span<const std::byte, 16> gid)
{
    using s = prm::wqe_address_vector;
    return segment<s>([&](auto view) {
        const auto base = view.at(s::compact);
        fill(base, lid, dctn, 0);
        base.put(prm::wqe_compact_address_vector::dc_key, access_key);
        base.template put<true>(prm::wqe_compact_address_vector::extended);
        view.template put<true>(s::grh);
        std::ranges::copy(gid, view.at(s::rgid).begin());
    });
}

work_request& work_request::stream(std::uint16_t channel)
{
    control().put(wqe_control_segment::dci_stream_channel_id, channel);
    return *this;
}

work_request& work_request::compact_address(std::uint16_t lid, std::uint32_t qpn, std::uint32_t qkey)
{
    return segment<prm::wqe_compact_address_vector>([&](auto view) { fill(view, lid, qpn, qkey); });
}

std::vector<std::byte> work_request::bytes() const
{
    auto made = _bytes;
    must_set(*prm::view<wqe_control_segment>::over(made), wqe_control_segment::ds, made.size() / prm::wqe_unit_bytes);
    return made;
}

} // namespace ucxl::softhca::test
