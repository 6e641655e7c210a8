#include "lay_shm_ep.h"

#include "base_endpoint.h"
#include "refusal.h"
#include "shm_import.h"
#include "transfer.h"

#include <array>
#include <cstring>

namespace ucxl
{

namespace
{

// The range of a window that the key is of. None, and it is logged, if it is not all inside.
std::optional<transfer_side> remote_side(uct_rkey_t rkey, std::uint64_t address, std::size_t length)
{
    const auto& in             = *reinterpret_cast<const imported_window*>(rkey);
    const std::uint64_t offset = address - in.key.address;
    if (offset > in.key.length || length > in.key.length - offset) {
        report_refusal("lay_shm", reinterpret_cast<const void*>(address), length, "are not inside the remote window");
        return std::nullopt;
    }
    if (in.contiguous != nullptr) {
        return transfer_side{nullptr, {}, 0, in.contiguous + offset};
    }
    return transfer_side{in.plan.get(), in.bases, offset, nullptr};
}

ucs_status_t put(const void* from, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
{
    if (length == 0) {
        return UCS_OK;
    }
    const reader_section guard;
    const auto target = remote_side(rkey, remote, length);
    const auto source = target ? local_side(guard, from, length, "lay_shm") : std::nullopt;
    if (!source) {
        return UCS_ERR_INVALID_ADDR;
    }
    move_bytes(*target, *source, length);
    return UCS_OK;
}

// UCP ends the process if a get fails, and a peer chose the length of its window. So what is not inside is logged and
// read as zeros.
void get(void* to, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
{
    if (length == 0) {
        return;
    }
    const reader_section guard;
    const auto target = local_side(guard, to, length, "lay_shm");
    if (!target) {
        return;
    }
    if (const auto source = remote_side(rkey, remote, length)) {
        move_bytes(*target, *source, length);
        return;
    }
    if (target->plan == nullptr) {
        std::memset(to, 0, length);
    }
}

ucs_status_t put_short(uct_ep_h, const void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t rkey)
{
    return put(buffer, length, remote, rkey);
}

ucs_status_t put_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t rkey,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        if (const auto status = put(iov[i].buffer, iov[i].length, remote, rkey); status != UCS_OK) {
            return status;
        }
        remote += iov[i].length;
    }
    return UCS_OK;
}

ucs_status_t get_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t rkey,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        get(iov[i].buffer, iov[i].length, remote, rkey);
        remote += iov[i].length;
    }
    return UCS_OK;
}

ssize_t put_bcopy(uct_ep_h, uct_pack_callback_t pack, void* arg, std::uint64_t remote, uct_rkey_t rkey)
{
    alignas(64) std::array<std::byte, lay_shm_bcopy_length> buffer;
    const std::size_t length = pack(buffer.data(), arg);
    const auto status        = put(buffer.data(), length, remote, rkey);
    return status == UCS_OK ? static_cast<ssize_t>(length) : static_cast<ssize_t>(status);
}

ucs_status_t get_bcopy(uct_ep_h, uct_unpack_callback_t unpack, void* arg, std::size_t length, std::uint64_t remote,
                       uct_rkey_t rkey, uct_completion_t*)
{
    alignas(64) std::array<std::byte, lay_shm_bcopy_length> buffer;
    get(buffer.data(), length, remote, rkey);
    unpack(arg, buffer.data(), length);
    return UCS_OK;
}

} // namespace

void lay_shm_ep_ops(uct_iface_ops_t& ops)
{
    base_endpoint_ops(ops);
    ops.ep_put_short = put_short;
    ops.ep_put_bcopy = put_bcopy;
    ops.ep_put_zcopy = put_zcopy;
    ops.ep_get_bcopy = get_bcopy;
    ops.ep_get_zcopy = get_zcopy;
}

} // namespace ucxl
