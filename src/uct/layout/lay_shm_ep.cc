#include "lay_shm_ep.h"

#include "host_endpoint.h"

namespace ucxl
{

namespace
{

transfer_side remote_side(const imported_window& in, std::uint64_t offset)
{
    if (in.contiguous != nullptr) {
        return {nullptr, {}, 0, in.contiguous + offset};
    }
    return {in.plan.get(), in.bases, offset, nullptr};
}

struct mapped_access {
    static constexpr const char* name = "lay_shm";

    static bool put(const imported_window& to, std::uint64_t offset, const transfer_side& from, std::size_t length)
    {
        move_bytes(remote_side(to, offset), from, length);
        return true;
    }

    static bool get(const imported_window& from, std::uint64_t offset, const transfer_side& to, std::size_t length)
    {
        move_bytes(to, remote_side(from, offset), length);
        return true;
    }
};

} // namespace

void lay_shm_ep_ops(uct_iface_ops_t& ops)
{
    host_endpoint<mapped_access>::fill(ops);
}

} // namespace ucxl
