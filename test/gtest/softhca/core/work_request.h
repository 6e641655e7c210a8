// Send WQEs as libmlx5 and UCX build them.
//
//     a.post(work_request(wqe_opcode::rdma_write).signaled().remote(address, rkey).data(lkey, source, 8));
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prm/send_wqe.h"

namespace ucxl::softhca::test
{

class work_request
{
public:
    explicit work_request(prm::wqe_opcode opcode, std::uint8_t op_mod = 0);

    work_request& signaled() { return completion(prm::wqe_completion::always); }
    work_request& completion(prm::wqe_completion when);
    work_request& solicited();
    work_request& fence(prm::wqe_fence kind);
    work_request& imm(std::uint32_t value);
    work_request& remote(std::uint64_t address, std::uint32_t rkey);
    work_request& data(std::uint32_t lkey, std::uint64_t address, std::uint32_t length);
    work_request& inline_data(std::span<const std::byte> bytes);

    // An operand of 8 bytes.
    work_request& fetch_add(std::uint64_t add);
    work_request& compare_swap(std::uint64_t compare, std::uint64_t swap);

    // A full address vector, with a route header when there is a destination.
    work_request& address(std::uint16_t lid, std::uint32_t qpn, std::uint32_t qkey);
    work_request& address(std::uint16_t lid, std::uint32_t qpn, std::uint32_t qkey, std::span<const std::byte, 16> gid);
    work_request& compact_address(std::uint16_t lid, std::uint32_t qpn, std::uint32_t qkey);

    // The address of a DC target, compact or with a route header.
    work_request& target(std::uint16_t lid, std::uint32_t dctn, std::uint64_t access_key);
    work_request& target(std::uint16_t lid, std::uint32_t dctn, std::uint64_t access_key,
                         std::span<const std::byte, 16> gid);
    work_request& stream(std::uint16_t channel);

    template <typename S, typename Fill>
    work_request& segment(Fill&& fill)
    {
        prm::storage<S> made;
        fill(*made);
        _bytes.insert(_bytes.end(), made.bytes.begin(), made.bytes.end());
        return *this;
    }

    // With the length filled in, not padded.
    std::vector<std::byte> bytes() const;

private:
    prm::view<prm::wqe_control_segment> control() { return *prm::view<prm::wqe_control_segment>::over(_bytes); }

    std::vector<std::byte> _bytes;
};

} // namespace ucxl::softhca::test
