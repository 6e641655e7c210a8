#include "lay_cma_ep.h"

#include "host_endpoint.h"
#include "process_copy.h"
#include "refusal.h"
#include "shm_rkey.h"

#include <cerrno>
#include <cstring>

namespace ucxl
{

namespace
{

void report(std::uint64_t address, std::size_t length, const char* why)
{
    report_refusal("lay_cma", reinterpret_cast<const void*>(address), length, why);
}

const char* reason_of(int error)
{
    switch (error) {
    case ESTALE:
        return "are of a remote window that is gone";
    case ESRCH:
        return "are of a process that has ended";
    default:
        return "are memory of a process that the kernel does not copy";
    }
}

struct process_access {
    static ucs_status_t put(const void* from, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
    {
        if (length == 0) {
            return UCS_OK;
        }
        const reader_section guard;
        const auto source = local_side(guard, from, length, "lay_cma");
        if (!source || !copy(copy_to_process, *source, length, remote, rkey)) {
            return UCS_ERR_INVALID_ADDR;
        }
        return UCS_OK;
    }

    static void get(void* to, std::size_t length, std::uint64_t remote, uct_rkey_t rkey)
    {
        if (length == 0) {
            return;
        }
        const reader_section guard;
        const auto target = local_side(guard, to, length, "lay_cma");
        if (target && !copy(copy_from_process, *target, length, remote, rkey) && target->plan == nullptr) {
            std::memset(to, 0, length);
        }
    }

private:
    static bool copy(decltype(copy_to_process) by, const transfer_side& local, std::size_t length, std::uint64_t remote,
                     uct_rkey_t rkey)
    {
        const imported_window& in = window_of(rkey);
        if (!is_inside(in, remote, length)) {
            report(remote, length, "are not inside the remote window");
            return false;
        }
        if (!by(in, remote - in.key.address, local, length)) {
            report(remote, length, reason_of(errno));
            return false;
        }
        return true;
    }
};

} // namespace

void lay_cma_ep_ops(uct_iface_ops_t& ops)
{
    host_endpoint<process_access>::fill(ops);
}

} // namespace ucxl
