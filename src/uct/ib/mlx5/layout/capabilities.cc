#include "capabilities.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <infiniband/mlx5dv.h>

#include "prm/hca_cap_pages.h"

namespace ucxl::mlx5
{

namespace
{

// Entries of a list: 16-byte units, counted in 16 bits, in groups of four.
constexpr std::uint32_t max_octowords = 65532;

// A single command may fail by chance.
constexpr int tries_for_an_answer = 3;

using answer = prm::storage<prm::query_hca_cap_out>;

// Returns null and sets errno if the device refuses.
std::unique_ptr<answer> query_page(ibv_context* context, prm::cap_page page)
{
    prm::storage<prm::query_hca_cap_in> command;
    (*command).put<prm::command::query_hca_cap>(prm::query_hca_cap_in::opcode);
    const auto op_mod = static_cast<std::uint16_t>(std::to_underlying(page) << 1 | prm::cap_current);
    (void)(*command).set(prm::query_hca_cap_in::op_mod, op_mod);
    auto out = std::make_unique<answer>();
    if (const int error = mlx5dv_devx_general_cmd(context, command.bytes.data(), command.bytes.size(),
                                                  out->bytes.data(), out->bytes.size());
        error != 0) {
        errno = error;
        return nullptr;
    }
    return out;
}

result<bool> has_long_atomics(ibv_context* context, bool has_dynamic_connections)
{
    const auto page = query_page(context, prm::cap_page::atomic);
    if (page == nullptr) {
        return fail_errno("QUERY_HCA_CAP of atomic operations");
    }
    const auto caps       = (**page).at(prm::query_hca_cap_out::atomic);
    const auto operations = std::to_underlying(caps.get(prm::atomic_caps::atomic_operations));
    return (operations & std::to_underlying(prm::atomic_operation::fetch_add)) != 0 &&
           (caps.get(prm::atomic_caps::atomic_size_qp) & sizeof(std::uint64_t)) != 0 &&
           (!has_dynamic_connections || (caps.get(prm::atomic_caps::atomic_size_dc) & sizeof(std::uint64_t)) != 0);
}

prm::wqe_fence fence_for(prm::umr_fence_kind needed)
{
    switch (needed) {
    case prm::umr_fence_kind::none:
        return prm::wqe_fence::none;
    case prm::umr_fence_kind::small:
        return prm::wqe_fence::initiator_small;
    case prm::umr_fence_kind::strong:
        break;
    }
    return prm::wqe_fence::strong_ordering; // also for what is not known, as Linux does
}

} // namespace

result<capabilities> query_capabilities(ibv_context* context)
{
    if (!mlx5dv_is_supported(context->device)) {
        return fail(errc::unsupported, std::format("{} is not an mlx5 device", ibv_get_device_name(context->device)));
    }
    const auto out = query_page(context, prm::cap_page::general);
    if (out == nullptr) {
        return fail_errno("QUERY_HCA_CAP (is the device opened with DEVX?)");
    }
    const auto caps = (**out).at(prm::query_hca_cap_out::general);
    capabilities found;
    const unsigned log_list       = std::min<unsigned>(caps.get(prm::hca_cap::log_max_klm_list_size), 16);
    found.limits.max_list_entries = std::min(1U << log_list, max_octowords);
    // The header of a repeat block takes the place of one entry.
    found.limits.max_repeat_entries = found.limits.max_list_entries - 1;
    found.limits.max_nesting        = caps.get(prm::hca_cap::max_indirection);
    found.limits.repeat_blocks      = caps.get(prm::hca_cap::repeated_block_disabled) == 0;
    if (found.limits.max_nesting == 0 || caps.get(prm::hca_cap::umr_indirect_mkey_disabled) != 0) {
        return fail(errc::unsupported, "the device binds no indirect memory keys");
    }
    found.vhca_id                = caps.get(prm::hca_cap::vhca_id);
    found.umr_fence              = fence_for(caps.get(prm::hca_cap::umr_fence));
    found.nested_by_local_rights = caps.get(prm::hca_cap::imaicl) != 0;
    found.equal_entries          = caps.get(prm::hca_cap::fixed_buffer_size) != 0;
    found.umr_sets_atomic_right  = caps.get(prm::hca_cap::umr_modify_atomic_disabled) == 0;
    found.atomics_lock_memory    = caps.get(prm::hca_cap::atomic_rate_pa) != 0;
    found.relaxed_only           = caps.get(prm::hca_cap::mkc_order_write_after_write_ro_only) != 0;
    found.log_keys               = caps.get(prm::hca_cap::log_max_mkey);
    found.has_atomics            = caps.get(prm::hca_cap::atomic) != 0;
    // An atomic operation must not overtake the writes before it.
    found.atomics = found.has_atomics && found.umr_sets_atomic_right && !found.relaxed_only &&
                    UCXL_TRY(has_long_atomics(context, caps.get(prm::hca_cap::dct) != 0));
    return found;
}

bool says_it_opens_keys(ibv_context* context)
{
    const auto page = query_page(context, prm::cap_page::general_2);
    if (page == nullptr) {
        return false;
    }
    const auto objects =
        (**page).at(prm::query_hca_cap_out::general_2).get(prm::hca_cap_2::allowed_object_for_other_vhca_access);
    return (std::to_underlying(objects) & std::to_underlying(prm::vhca_object::mkey)) != 0;
}

bool answers_commands(ibv_context* context)
{
    for (int i = 0; i < tries_for_an_answer; ++i) {
        if (query_page(context, prm::cap_page::general) != nullptr) {
            return true;
        }
    }
    return false;
}

} // namespace ucxl::mlx5
