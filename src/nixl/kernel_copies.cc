#include "kernel_copies.h"

#include "log.h"
#include "sys/size_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <sys/uio.h>

namespace ucxl::nixl
{

namespace
{

// For shorter blocks the kernel takes much longer to find their pages than to copy them.
constexpr std::uint64_t default_min_block = 512;

constexpr const char* variable = "UCX_LAY_CMA_MIN_BLOCK";
constexpr const char* option   = "LAY_CMA_MIN_BLOCK";

// From which average length of blocks on lay_cma takes windows. With a value that UCX does not understand it takes
// none.
std::uint64_t min_block()
{
    const char* const chosen = getenv(variable);
    return chosen == nullptr ? default_min_block : ucxl::read_size(chosen).value_or(SIZE_MAX);
}

// Asks for a byte that no process has. The kernel looks first whether the other process may be looked into at all, and
// has another error for that.
bool is_allowed(pid_t process)
{
    char byte;
    const iovec local{&byte, 1}, remote{nullptr, 1};
    return process_vm_readv(process, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT;
}

} // namespace

ucp_config_t* config_with_kernel_copies()
{
    const auto& ucp      = *ucx();
    ucp_config_t* config = nullptr;
    if (ucp.config_read(nullptr, nullptr, &config) != UCS_OK) {
        return nullptr;
    }
    if (getenv(variable) == nullptr) {
        ucp.config_modify(config, option, std::to_string(default_min_block).c_str());
    }
    return config;
}

bool is_for_kernel(const ucx_layout::layout& layout)
{
    const auto attr = layout.query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_ATTR_FIELD_BLOCKS);
    return attr && attr->num_blocks != 0 && attr->packed_length / attr->num_blocks >= min_block();
}

bool has_transport(ucp_ep_h endpoint, std::string_view name)
{
    std::array<ucp_transport_entry_t, 64> entries{};
    ucp_ep_attr_t attr{};
    attr.field_mask             = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attr.transports.entries     = entries.data();
    attr.transports.num_entries = entries.size();
    attr.transports.entry_size  = sizeof(entries[0]);
    if (ucx()->ep_query(endpoint, &attr) != UCS_OK) {
        return false;
    }
    return std::ranges::any_of(std::span(entries).first(attr.transports.num_entries),
                               [&](const auto& each) { return each.transport_name == name; });
}

bool can_kernel_copy(ucp_ep_h endpoint, pid_t process)
{
    return is_allowed(process) && has_transport(endpoint, "lay_cma");
}

} // namespace ucxl::nixl
