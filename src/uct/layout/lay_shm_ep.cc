#include "lay_shm_ep.h"

#include "host_endpoint.h"

namespace ucxl
{

namespace
{

transfer_side remote_side(const imported_window& window, std::uint64_t offset)
{
    if (window.contiguous != nullptr) {
        return {nullptr, {}, 0, window.contiguous + offset};
    }
    return {window.plan.get(), window.bases, offset, nullptr};
}

struct mapped_access {
    static constexpr const char* name = "lay_shm";

    static const char* put(const imported_window& window, std::uint64_t offset, const transfer_side& source,
                           std::size_t length)
    {
        move_bytes(remote_side(window, offset), source, length);
        return nullptr;
    }

    static const char* get(const imported_window& window, std::uint64_t offset, const transfer_side& target,
                           std::size_t length)
    {
        move_bytes(target, remote_side(window, offset), length);
        return nullptr;
    }
};

} // namespace

void lay_shm_ep_ops(uct_iface_ops_t& ops)
{
    host_endpoint<mapped_access>::fill(ops);
}

} // namespace ucxl
