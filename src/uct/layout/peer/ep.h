// The endpoint of a host interface (iface.h): the operations of UCT, made from one way to put and one way to get. The
// remote key holds everything an operation needs about the target; the endpoint has no state beyond a base endpoint.
//
// Access provides a name for messages; refusal_of(), why the window may not be used, or null; and put() and get()
// between a local side and a window from an offset on. The range is inside both. They return null, or why they failed.
// They get what offer_of() returned for the local buffer: what the owner of the window needs to know to take part. Both
// are called outside of any reader section.
//
// Invariant: a window that its owner took back is not touched again.
//
// Example: host_endpoint<mapped_access>::fill(ops)
#pragma once

#include "iface.h"
#include "rkey.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/base/iface.h"
#include "uct/layout/base/window_copy.h"

#include <algorithm>
#include <array>
#include <type_traits>

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
    // Why the range cannot be served, or null.
    static const char* refusal_of(const imported_window& window, std::uint64_t remote, std::size_t length)
    {
        if (!is_inside(window, remote, length)) {
            return "are not inside the remote window";
        }
        return Access::refusal_of(window);
    }

    static ucs_status_t refuse(failure_kind kind, std::uint64_t remote, std::size_t length, const char* reason)
    {
        report_failure({kind, Access::name, remote, length, reason, false});
        return UCS_ERR_INVALID_ADDR;
    }

    // `access` moves the bytes between the window and the local side, whose traffic `count` counts.
    template <auto access, auto count, typename Buffer>
    static ucs_status_t move(failure_kind kind, Buffer* buffer, std::size_t length, std::uint64_t remote,
                             uct_rkey_t rkey)
    {
        if (length == 0) {
            return UCS_OK;
        }
        const foreign_memory* const foreign = foreign_at(buffer, length);
        return foreign == nullptr ? move_own<access, count>(kind, buffer, length, remote, rkey)
                                  : move_foreign<access, count>(*foreign, kind, buffer, length, remote, rkey);
    }

    // With a local side that is of this process.
    template <auto access, auto count, typename Buffer>
    static ucs_status_t move_own(failure_kind kind, Buffer* buffer, std::size_t length, std::uint64_t remote,
                                 uct_rkey_t rkey)
    {
        const imported_window& window = window_of(rkey);
        const char* reason            = refusal_of(window, remote, length);
        if (reason == nullptr) {
            const auto offer = Access::offer_of(window, buffer, length);
            const reader_section section;
            const auto local = resolve(section, buffer, length);
            reason           = !local ? "have a local side that is not inside a live window"
                                      : access(window, remote - window.key.address, *local, length, offer);
            if (reason == nullptr && local->traffic != nullptr) {
                (local->traffic->*count)(length);
            }
        }
        return reason == nullptr ? UCS_OK : refuse(kind, remote, length, reason);
    }

    // With a local side that is a window of another process, which only a device reaches: through a buffer.
    template <auto access, auto count, typename Buffer>
    static ucs_status_t move_foreign(const foreign_memory& foreign, failure_kind kind, Buffer* buffer,
                                     std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
    {
        if (const char* const reason = refusal_of(window_of(rkey), remote, length)) {
            return refuse(kind, remote, length, reason); // before any part was moved
        }
        constexpr bool is_put         = std::is_const_v<Buffer>;
        constexpr const char* lost    = "have a local side in another process that the device cannot reach";
        constexpr std::size_t longest = 32 << 10;
        alignas(64) std::array<std::byte, longest> part;
        for (std::size_t at = 0; at < length; at += part.size()) {
            const std::size_t size = std::min(length - at, part.size());
            if constexpr (is_put) {
                if (!foreign.read(static_cast<const std::byte*>(buffer) + at, size, part.data())) {
                    return refuse(kind, remote, length, lost);
                }
            }
            const auto status = move_own<access, count>(kind, part.data(), size, remote + at, rkey);
            if (status != UCS_OK) {
                return status;
            }
            if constexpr (!is_put) {
                if (!foreign.write(static_cast<std::byte*>(buffer) + at, size, part.data())) {
                    return refuse(kind, remote, length, lost);
                }
            }
        }
        return UCS_OK;
    }

    static ucs_status_t put(const void* buffer, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
    {
        return move<Access::put, &window_traffic::count_read>(failure_kind::remote_write, buffer, length, remote, rkey);
    }

    static ucs_status_t get(void* buffer, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
    {
        return move<Access::get, &window_traffic::count_write>(failure_kind::remote_read, buffer, length, remote, rkey);
    }

    // UCP ends the process if it cannot start a get (its protocols have no abort). But it reads the status of the
    // completion when the request ends.
    static ucs_status_t complete_get(uct_completion_t* completion, ucs_status_t status)
    {
        if (status != UCS_OK && completion != nullptr && completion->status == UCS_OK) {
            completion->status = status;
        }
        return completion != nullptr ? UCS_OK : status;
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
                                  uct_rkey_t rkey, uct_completion_t* completion)
    {
        for (std::size_t i = 0; i < num_iov; ++i) {
            if (const auto status = get(iov[i].buffer, iov[i].length, remote, rkey); status != UCS_OK) {
                return complete_get(completion, status);
            }
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
                                  std::uint64_t remote, uct_rkey_t rkey, uct_completion_t* completion)
    {
        alignas(64) std::array<std::byte, host_bcopy_length> buffer;
        const auto status = length == 0 ? UCS_OK
                                        : move_own<Access::get, &window_traffic::count_write>(
                                              failure_kind::remote_read, buffer.data(), length, remote, rkey);
        if (status != UCS_OK) {
            return complete_get(completion, status);
        }
        unpack(arg, buffer.data(), length);
        return UCS_OK;
    }
};

} // namespace ucxl
