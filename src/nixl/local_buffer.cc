#include "local_buffer.h"

#include "log.h"

namespace ucxl::nixl
{

memory_handle map_memory(ucp_context_h context, void* address, std::uint64_t length)
{
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = address;
    params.length      = length;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    ucp_mem_h made     = nullptr;
    ucx()->retire_registrations(address, length); // else the handle may share one with an operation that runs
    if (const auto status = ucx()->mem_map(context, &params, &made); status != UCS_OK) {
        [[maybe_unused]] static const bool is_told = [&] {
            log_error(
                "ucp_mem_map of {} bytes failed ({}), said once; they move without a handle, with which UCX could "
                "end while an agent of this host still takes them",
                length, static_cast<int>(status));
            return true;
        }();
        return {};
    }
    ucx()->retire_registrations(address, length); // others get another one
    return memory_handle(made, {context});
}

} // namespace ucxl::nixl
