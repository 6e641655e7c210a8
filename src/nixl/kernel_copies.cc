#include "kernel_copies.h"

#include "log.h"
#include "sys/size_text.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

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

bool can_kernel_copy(ucp_ep_h endpoint, pid_t process)
{
    return is_allowed(process) && has_transport(endpoint, "lay_cma");
}

} // namespace ucxl::nixl
