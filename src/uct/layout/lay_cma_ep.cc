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

    static bool put(const imported_window& to, std::uint64_t offset, const transfer_side& from, std::size_t length)
    {
        return copy_to_process(to, offset, from, length) || report(to, offset, length);
    }

    static bool get(const imported_window& from, std::uint64_t offset, const transfer_side& to, std::size_t length)
    {
        return copy_from_process(from, offset, to, length) || report(from, offset, length);
    }

private:
    // False.
    static bool report(const imported_window& in, std::uint64_t offset, std::size_t length)
    {
        const char* const why = reason_of(errno);
        report_refusal(name, reinterpret_cast<const void*>(in.key.address + offset), length, why);
        return false;
    }
};

} // namespace

void lay_cma_ep_ops(uct_iface_ops_t& ops)
{
    host_endpoint<process_access>::fill(ops);
}

} // namespace ucxl
