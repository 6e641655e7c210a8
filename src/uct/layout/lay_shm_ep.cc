#include "lay_shm_ep.h"

#include "host_endpoint.h"
#include "refusal.h"
#include "shm_rkey.h"
#include "transfer.h"

#include <cstring>

namespace ucxl
{

namespace
{

// The range of a window that the key is of. None, and it is logged, if it is not all inside.
std::optional<transfer_side> remote_side(uct_rkey_t rkey, std::uint64_t address, std::size_t length)
{
    const imported_window& in = window_of(rkey);
    if (!is_inside(in, address, length)) {
        report_refusal("lay_shm", reinterpret_cast<const void*>(address), length, "are not inside the remote window");
        return std::nullopt;
    }
    const std::uint64_t offset = address - in.key.address;
    if (in.contiguous != nullptr) {
        return transfer_side{nullptr, {}, 0, in.contiguous + offset};
    }
    return transfer_side{in.plan.get(), in.bases, offset, nullptr};
}

struct mapped_access {
    static ucs_status_t put(const void* from, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
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

    static void get(void* to, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
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
};

} // namespace

void lay_shm_ep_ops(uct_iface_ops_t& ops)
{
    host_endpoint<mapped_access>::fill(ops);
}

} // namespace ucxl
