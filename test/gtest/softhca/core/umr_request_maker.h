// UMR WQEs built as libmlx5 builds them, with the structures of <infiniband/mlx5dv.h>. What is not set is garbage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "key_maker.h"

namespace ucxl::softhca::test
{

class umr_request_maker
{
public:
    umr_request_maker(std::uint32_t key, std::uint32_t qpn);

    // Fields of the context; each sets its bit of the mask.
    umr_request_maker& len(std::uint64_t bytes);
    umr_request_maker& start(std::uint64_t address);
    umr_request_maker& variant(std::uint8_t value);
    umr_request_maker& qpn(std::uint32_t value);
    umr_request_maker& pd(std::uint32_t value);
    umr_request_maker& free(bool value);
    umr_request_maker& access(bool local_write, bool remote_read, bool remote_write, bool atomic);

    umr_request_maker& mask(std::uint64_t bits);
    umr_request_maker& flags(std::uint8_t bits);
    umr_request_maker& offset(std::uint16_t entries);
    umr_request_maker& signature(std::uint16_t units);
    umr_request_maker& octowords(std::uint16_t count);

    // Padded to four.
    umr_request_maker& entries(std::vector<translation_entry> list);
    umr_request_maker& entries_at(std::uint32_t key, std::uint64_t address, std::uint16_t count);

    std::vector<std::byte> bytes() const;

private:
    std::uint32_t _key;
    std::uint32_t _qpn;
    std::vector<std::byte> _control; // mlx5_wqe_umr_ctrl_seg
    std::vector<std::byte> _context; // mlx5_wqe_mkey_context_seg
    std::vector<std::byte> _rest;
};

// As ibv_bind_mw and IBV_WR_BIND_MW do; length 0 unbinds.
std::vector<std::byte> bind_type_1(std::uint32_t old_key, std::uint32_t new_key, std::uint32_t lkey,
                                   std::uint64_t address, std::uint32_t length, std::uint32_t qpn);
std::vector<std::byte> bind_type_2(std::uint32_t old_key, std::uint32_t new_key, std::uint32_t lkey,
                                   std::uint64_t address, std::uint32_t length, std::uint32_t qpn);

// As IBV_WR_LOCAL_INV does.
std::vector<std::byte> local_invalidate(std::uint32_t key, std::uint32_t qpn);

} // namespace ucxl::softhca::test
