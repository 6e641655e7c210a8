#include "context_view.h"

#include "ucs/window/window.h"

#include "abi/component.h"
#include "abi/registrations.h"
#include "abi/ucx.h"

#include <format>

namespace ucxl
{

namespace
{

// Registers an address that belongs to no window. Some releases of UCX refuse memory of a type for which the context
// has no domain.
result<asked_domains> ask(ucp_context_h context)
{
    UCXL_TRY(window_registry::instance().reserve());
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = window_registry::instance().arena_base() - 1;
    params.length      = 1;
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h probe    = nullptr;
    domain_query query;
    const auto status = ucp_mem_map(context, &params, &probe);
    if (status == UCS_OK) {
        abi::retire_registrations(params.address, params.length); // a context at the same address is asked again
        ucp_mem_unmap(context, probe);
    } else if (status != UCS_ERR_INVALID_PARAM || query.found.copying != nullptr) {
        return fail(status == UCS_ERR_NO_MEMORY ? errc::no_memory : errc::io_error,
                    std::format("UCP does not tell what the context has (status {})", static_cast<int>(status)));
    }
    return std::move(query.found);
}

} // namespace

result<const context_view*> context_views::of(ucp_context_h context)
{
    if (const auto known = _known.find(context); known != _known.end()) {
        return &known->second;
    }
    const bool is_ours = context != nullptr && !abi::is_foreign(context);
    _other             = is_ours ? context_view{UCXL_TRY(ask(context)), ++_num_asked} : context_view{};
    if (_other.copying == nullptr) {
        return &_other;
    }
    return &_known.emplace(context, std::move(_other)).first->second;
}

void context_views::forget(const void* copying)
{
    std::erase_if(_known, [&](const auto& pair) { return pair.second.copying == copying; });
}

std::string why_no_windows(ucp_context_h context)
{
    if (abi::is_foreign(context)) {
        return std::format("the context belongs to another UCX of this process than {}, with which windows work",
                           abi::attached_file());
    }
    return "the transport lay_copy is not in this UCP context. UCX_TLS (or the TLS option of the context) leaves it "
           "out: add lay_copy to the list, for example UCX_TLS=posix,cma,lay_copy";
}

} // namespace ucxl
