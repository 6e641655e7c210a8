#include "registered_memory.h"

#include "tools/common/failure.h"

namespace ucxl::perf
{

registered_memory registered_memory::create(ucp_context_h context, void* address, std::size_t length)
{
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = address;
    params.length     = length;
    registered_memory result;
    result._context = context;
    tools::check(ucp_mem_map(context, &params, &result._memh), "ucp_mem_map");
    return result;
}

} // namespace ucxl::perf
