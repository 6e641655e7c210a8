#include "lay_copy_ep.h"

#include "base_endpoint.h"
#include "transfer.h"

#include <cstring>

namespace ucxl
{

namespace
{

ucs_status_t report(failure_kind kind, const refused_range& refused, bool silent)
{
    report_failure(
        {kind, "lay_copy", reinterpret_cast<std::uintptr_t>(refused.address), refused.length, refused.reason, silent});
    return UCS_ERR_INVALID_ADDR;
}

// UCP stages fragments with the short operations and ends the process (ucs_fatal) if one fails. A window that
// is gone must not do that, least of all because of what a peer sent; so they drop what was to be written or read
// zeros, and succeed.
ucs_status_t put_short(uct_ep_h, const void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t)
{
    if (const auto refused = write_window(reinterpret_cast<void*>(remote), buffer, length)) {
        report(failure_kind::write, *refused, true);
    }
    return UCS_OK;
}

ucs_status_t get_short(uct_ep_h, void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t)
{
    if (const auto refused = read_window(buffer, reinterpret_cast<const void*>(remote), length)) {
        std::memset(buffer, 0, length);
        report(failure_kind::read, *refused, true);
    }
    return UCS_OK;
}

// The pipelines that use the zero-copy operations go on whatever these return: rndv_put.c and rndv_get.c look at no
// status of a copy. A receiver must not see what a fragment held before.
ucs_status_t put_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        if (const auto refused = write_window(reinterpret_cast<void*>(remote), iov[i].buffer, iov[i].length)) {
            return report(failure_kind::write, *refused, true);
        }
        remote += iov[i].length;
    }
    return UCS_OK;
}

ucs_status_t get_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        if (const auto refused = read_window(iov[i].buffer, reinterpret_cast<const void*>(remote), iov[i].length)) {
            std::memset(iov[i].buffer, 0, iov[i].length);
            return report(failure_kind::read, *refused, true);
        }
        remote += iov[i].length;
    }
    return UCS_OK;
}

} // namespace

void lay_copy_ep_ops(uct_iface_ops_t& ops)
{
    base_endpoint_ops(ops);
    ops.ep_put_short = put_short;
    ops.ep_get_short = get_short;
    ops.ep_put_zcopy = put_zcopy;
    ops.ep_get_zcopy = get_zcopy;
}

} // namespace ucxl
