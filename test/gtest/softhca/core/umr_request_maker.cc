#include "umr_request_maker.h"

#include <infiniband/mlx5dv.h>

#include <cstring>
#include <endian.h>

namespace ucxl::softhca::test
{

namespace
{

constexpr std::byte garbage{0xe5};

mlx5_wqe_umr_ctrl_seg& control_in(std::vector<std::byte>& bytes)
{
    return *reinterpret_cast<mlx5_wqe_umr_ctrl_seg*>(bytes.data());
}

mlx5_wqe_mkey_context_seg& context_in(std::vector<std::byte>& bytes)
{
    return *reinterpret_cast<mlx5_wqe_mkey_context_seg*>(bytes.data());
}

constexpr std::uint64_t pd_in_mask = 1 << 7; // not in mlx5dv.h

} // namespace

umr_request_maker::umr_request_maker(std::uint32_t key, std::uint32_t qpn)
    : _key(key), _qpn(qpn), _control(sizeof(mlx5_wqe_umr_ctrl_seg)),
      _context(sizeof(mlx5_wqe_mkey_context_seg), garbage)
{
    control_in(_control).flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
}

umr_request_maker& umr_request_maker::mask(std::uint64_t bits)
{
    control_in(_control).mkey_mask |= htobe64(bits);
    return *this;
}

umr_request_maker& umr_request_maker::flags(std::uint8_t bits)
{
    control_in(_control).flags |= bits;
    return *this;
}

umr_request_maker& umr_request_maker::offset(std::uint16_t entries)
{
    control_in(_control).translation_offset = htobe16(entries);
    return flags(MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET);
}

umr_request_maker& umr_request_maker::signature(std::uint16_t units)
{
    control_in(_control).bsf_octowords = htobe16(units);
    _rest.resize(std::size_t{units} * 16);
    return *this;
}

umr_request_maker& umr_request_maker::octowords(std::uint16_t count)
{
    control_in(_control).klm_octowords = htobe16(count);
    return *this;
}

umr_request_maker& umr_request_maker::len(std::uint64_t bytes)
{
    context_in(_context).len = htobe64(bytes);
    return mask(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN);
}

umr_request_maker& umr_request_maker::start(std::uint64_t address)
{
    context_in(_context).start_addr = htobe64(address);
    return mask(MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR);
}

umr_request_maker& umr_request_maker::variant(std::uint8_t value)
{
    const std::uint32_t rest      = be32toh(context_in(_context).qpn_mkey) & ~0xffU;
    context_in(_context).qpn_mkey = htobe32(rest | value);
    return mask(MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY);
}

umr_request_maker& umr_request_maker::qpn(std::uint32_t value)
{
    const std::uint32_t rest      = be32toh(context_in(_context).qpn_mkey) & 0xffU;
    context_in(_context).qpn_mkey = htobe32(value << 8 | rest);
    return mask(MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN);
}

umr_request_maker& umr_request_maker::pd(std::uint32_t value)
{
    context_in(_context).flags_pd = htobe32(value);
    return mask(pd_in_mask);
}

umr_request_maker& umr_request_maker::free(bool value)
{
    context_in(_context).free = value ? MLX5_WQE_MKEY_CONTEXT_FREE : 0;
    return mask(MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE);
}

umr_request_maker& umr_request_maker::access(bool local_write, bool remote_read, bool remote_write, bool atomic)
{
    context_in(_context).access_flags = (local_write ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE : 0) |
                                        (remote_read ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ : 0) |
                                        (remote_write ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE : 0) |
                                        (atomic ? MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC : 0);
    return mask(MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
                MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC);
}

umr_request_maker& umr_request_maker::entries(std::vector<translation_entry> list)
{
    list.resize((list.size() + 3) / 4 * 4);
    const auto bytes = std::as_bytes(std::span(list));
    _rest.assign(bytes.begin(), bytes.end());
    return octowords(static_cast<std::uint16_t>(list.size()));
}

umr_request_maker& umr_request_maker::entries_at(std::uint32_t key, std::uint64_t address, std::uint16_t count)
{
    control_in(_control).flags &= static_cast<std::uint8_t>(~MLX5_WQE_UMR_CTRL_FLAG_INLINE);
    const translation_entry pointer = klm(0xa5a5a5a5, key, address);
    _rest.assign(pointer.begin(), pointer.end());
    return octowords(count);
}

std::vector<std::byte> umr_request_maker::bytes() const
{
    const std::size_t size = sizeof(mlx5_wqe_ctrl_seg) + _control.size() + _context.size() + _rest.size();
    mlx5_wqe_ctrl_seg first{};
    first.opmod_idx_opcode = htobe32(MLX5_OPCODE_UMR);
    first.qpn_ds           = htobe32(_qpn << 8 | static_cast<std::uint32_t>((size + 15) / 16));
    first.imm              = htobe32(_key);
    std::vector<std::byte> wqe(sizeof(first));
    std::memcpy(wqe.data(), &first, sizeof(first));
    wqe.insert(wqe.end(), _control.begin(), _control.end());
    wqe.insert(wqe.end(), _context.begin(), _context.end());
    wqe.insert(wqe.end(), _rest.begin(), _rest.end());
    return wqe;
}

std::vector<std::byte> bind_type_1(std::uint32_t old_key, std::uint32_t new_key, std::uint32_t lkey,
                                   std::uint64_t address, std::uint32_t length, std::uint32_t qpn)
{
    umr_request_maker made(old_key, qpn);
    made.offset(0).variant(new_key & 0xff).free(length == 0);
    if (length != 0) {
        made.access(false, true, true, false).start(address).len(length).entries({klm(length, lkey, address)});
    }
    return made.bytes();
}

std::vector<std::byte> bind_type_2(std::uint32_t old_key, std::uint32_t new_key, std::uint32_t lkey,
                                   std::uint64_t address, std::uint32_t length, std::uint32_t qpn)
{
    umr_request_maker made(old_key, qpn);
    made.offset(0).variant(new_key & 0xff).free(false).qpn(qpn).flags(MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE);
    made.access(false, true, true, false).start(address).len(length).entries({klm(length, lkey, address)});
    return made.bytes();
}

std::vector<std::byte> local_invalidate(std::uint32_t key, std::uint32_t qpn)
{
    umr_request_maker made(key, qpn);
    return made.offset(0).variant(0).free(true).qpn(0xffffff).flags(MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN).bytes();
}

} // namespace ucxl::softhca::test
