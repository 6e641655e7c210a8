#include "lay_cma_ep.h"

#include "host_endpoint.h"
#include "process_copy.h"

#include <cerrno>

namespace ucxl
{

namespace
{

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
    static constexpr const char* name = "lay_cma";

    static const char* put(const imported_window& window, std::uint64_t offset, const transfer_side& source,
                           std::size_t length)
    {
        return copy_to_process(window, offset, source, length) ? nullptr : reason_of(errno);
    }

    static const char* get(const imported_window& window, std::uint64_t offset, const transfer_side& target,
                           std::size_t length)
    {
        return copy_from_process(window, offset, target, length) ? nullptr : reason_of(errno);
    }
};

} // namespace

void lay_cma_ep_ops(uct_iface_ops_t& ops)
{
    host_endpoint<process_access>::fill(ops);
}

} // namespace ucxl
