#include "capabilities.h"

#include <algorithm>
#include <memory>

#include <infiniband/mlx5dv.h>

#include "prm/hca_cap_more.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint16_t general_current = 0x1; // op_mod: the first page, values in force

// Entries of a list: 16-byte units counted in 16 bits, in groups of four.
constexpr std::uint32_t max_octowords = 65532;

} // namespace

outcome<capabilities> query_capabilities(ibv_context* context)
{
    if (!mlx5dv_is_supported(context->device)) {
        return failed(UCS_ERR_UNSUPPORTED,
                      std::format("{} is not an mlx5 device", ibv_get_device_name(context->device)));
    }
    prm::storage<prm::query_hca_cap_in> in;
    (*in).put<prm::command::query_hca_cap>(prm::query_hca_cap_in::opcode);
    (*in).put<general_current>(prm::query_hca_cap_in::op_mod);
    const auto out = std::make_unique<prm::storage<prm::query_hca_cap_out>>();
    if (mlx5dv_devx_general_cmd(context, in.bytes.data(), in.bytes.size(), out->bytes.data(), out->bytes.size()) != 0) {
        return refused("QUERY_HCA_CAP (is the device opened with DEVX?)");
    }
    const auto caps = (**out).at(prm::query_hca_cap_out::general);
    capabilities found;
    const unsigned log_list       = std::min<unsigned>(caps.get(prm::hca_cap::log_max_klm_list_size), 16);
    found.limits.max_list_entries = std::min(1U << log_list, max_octowords);
    // A repeat block's header takes a place.
    found.limits.max_repeat_entries = found.limits.max_list_entries - 1;
    found.limits.max_nesting        = caps.get(prm::hca_cap::max_indirection);
    found.limits.repeat_blocks =
        caps.get(prm::hca_cap::repeated_mkey) != 0 && caps.get(prm::hca_cap::repeated_block_disabled) == 0;
    found.pointer_entries = caps.get(prm::hca_cap::umr_ptr_rlkey) != 0;
    if (found.limits.max_nesting == 0 || caps.get(prm::hca_cap::umr_indirect_mkey_disabled) != 0) {
        return failed(UCS_ERR_UNSUPPORTED, "the device binds no indirect memory keys");
    }
    return found;
}

} // namespace ucxl::mlx5
