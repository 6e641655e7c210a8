// The endpoint of an interface of host_interface.h: the operations of UCT on one way of putting and one of getting. All
// that an operation needs of the target is in its remote key; the endpoint itself is nothing but a base endpoint.
//
// Access has a name for messages, and put() and get(): between a window, from an offset in it, and a local side. The
// range is inside both. They return false if they failed, and have logged it.
//
// Example: host_endpoint<mapped_access>::fill(ops)
#pragma once

#include "base_endpoint.h"
#include "host_interface.h"
#include "refusal.h"
#include "shm_rkey.h"
#include "transfer.h"

#include <array>
#include <cstring>

namespace ucxl
{

template <typename Access>
struct host_endpoint {
    static void fill(uct_iface_ops_t& ops)
    {
        base_endpoint_ops(ops);
        ops.ep_put_short = put_short;
        ops.ep_put_bcopy = put_bcopy;
        ops.ep_put_zcopy = put_zcopy;
        ops.ep_get_bcopy = get_bcopy;
        ops.ep_get_zcopy = get_zcopy;
    }

private:
    static bool is_served(const imported_window& in, std::uint64_t remote, std::size_t length)
    {
        if (is_inside(in, remote, length)) {
            return true;
        }
        report_refusal(Access::name, reinterpret_cast<const void*>(remote), length, "are not inside the remote window");
        return false;
    }

    static ucs_status_t put(const void* from, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
    {
        if (length == 0) {
            return UCS_OK;
        }
        const imported_window& in = window_of(rkey);
        const reader_section guard;
        const auto source =
            is_served(in, remote, length) ? local_side(guard, from, length, Access::name) : std::nullopt;
        return source && Access::put(in, remote - in.key.address, *source, length) ? UCS_OK : UCS_ERR_INVALID_ADDR;
    }

    // UCP ends the process if a get fails, and a peer can make it fail. So it is logged, and what did not come is
    // zeros.
    static void get(void* to, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
    {
        if (length == 0) {
            return;
        }
        const imported_window& in = window_of(rkey);
        const reader_section guard;
        const auto target = local_side(guard, to, length, Access::name);
        if (!target) {
            return;
        }
        const bool came = is_served(in, remote, length) && Access::get(in, remote - in.key.address, *target, length);
        if (!came && target->plan == nullptr) {
            std::memset(to, 0, length);
        }
    }

    static ucs_status_t put_short(uct_ep_h, const void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t rkey)
    {
        return put(buffer, length, remote, rkey);
    }

    static ucs_status_t put_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote,
                                  uct_rkey_t rkey, uct_completion_t*)
    {
        for (std::size_t i = 0; i < num_iov; ++i) {
            if (const auto status = put(iov[i].buffer, iov[i].length, remote, rkey); status != UCS_OK) {
                return status;
            }
            remote += iov[i].length;
        }
        return UCS_OK;
    }

    static ucs_status_t get_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote,
                                  uct_rkey_t rkey, uct_completion_t*)
    {
        for (std::size_t i = 0; i < num_iov; ++i) {
            get(iov[i].buffer, iov[i].length, remote, rkey);
            remote += iov[i].length;
        }
        return UCS_OK;
    }

    static ssize_t put_bcopy(uct_ep_h, uct_pack_callback_t pack, void* arg, std::uint64_t remote, uct_rkey_t rkey)
    {
        alignas(64) std::array<std::byte, host_bcopy_length> buffer;
        const std::size_t length = pack(buffer.data(), arg);
        const auto status        = put(buffer.data(), length, remote, rkey);
        return status == UCS_OK ? static_cast<ssize_t>(length) : static_cast<ssize_t>(status);
    }

    static ucs_status_t get_bcopy(uct_ep_h, uct_unpack_callback_t unpack, void* arg, std::size_t length,
                                  std::uint64_t remote, uct_rkey_t rkey, uct_completion_t*)
    {
        alignas(64) std::array<std::byte, host_bcopy_length> buffer;
        get(buffer.data(), length, remote, rkey);
        unpack(arg, buffer.data(), length);
        return UCS_OK;
    }
};

} // namespace ucxl
