// The endpoint of an interface of host_interface.h: the operations of UCT on one way of putting and one of getting. All
// that an operation needs of the target is in its remote key; the endpoint itself is nothing but a base endpoint.
//
// Example: struct access { static ucs_status_t put(const void* from, std::size_t length, std::uint64_t remote,
// uct_rkey_t); static void get(void* to, std::size_t length, std::uint64_t remote, uct_rkey_t); };
// host_endpoint<access>::fill(ops);
#pragma once

#include "base_endpoint.h"
#include "host_interface.h"

#include <array>

namespace ucxl
{

// Gets cannot fail: UCP ends the process if one does, and a peer could make it so. They log and deliver zeros.
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
    static ucs_status_t put_short(uct_ep_h, const void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t rkey)
    {
        return Access::put(buffer, length, remote, rkey);
    }

    static ucs_status_t put_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote,
                                  uct_rkey_t rkey, uct_completion_t*)
    {
        for (std::size_t i = 0; i < num_iov; ++i) {
            if (const auto status = Access::put(iov[i].buffer, iov[i].length, remote, rkey); status != UCS_OK) {
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
            Access::get(iov[i].buffer, iov[i].length, remote, rkey);
            remote += iov[i].length;
        }
        return UCS_OK;
    }

    static ssize_t put_bcopy(uct_ep_h, uct_pack_callback_t pack, void* arg, std::uint64_t remote, uct_rkey_t rkey)
    {
        alignas(64) std::array<std::byte, host_bcopy_length> buffer;
        const std::size_t length = pack(buffer.data(), arg);
        const auto status        = Access::put(buffer.data(), length, remote, rkey);
        return status == UCS_OK ? static_cast<ssize_t>(length) : static_cast<ssize_t>(status);
    }

    static ucs_status_t get_bcopy(uct_ep_h, uct_unpack_callback_t unpack, void* arg, std::size_t length,
                                  std::uint64_t remote, uct_rkey_t rkey, uct_completion_t*)
    {
        alignas(64) std::array<std::byte, host_bcopy_length> buffer;
        Access::get(buffer.data(), length, remote, rkey);
        unpack(arg, buffer.data(), length);
        return UCS_OK;
    }
};

} // namespace ucxl
