#include "window_types.h"

#include "component.h"
#include "config.h"
#include "log.h"
#include "ucx.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>

#include <unistd.h>

namespace ucxl::abi
{

namespace
{

// UCX's numbers; its oldest headers lack the second one.
constexpr auto rocm      = UCS_MEMORY_TYPE_ROCM;
constexpr auto ze_device = static_cast<ucs_memory_type_t>(7);
constexpr auto cuda      = UCS_MEMORY_TYPE_CUDA;

struct candidate {
    ucs_memory_type_t type;
    std::string_view components; // the names of UCX's components for such memory begin so
    const char* name;
    bool may_be_staged;
};

// The best one first: every release knows ROCM and CUDA, and most GPUs are of the last type. Staged windows are never
// of that type, so what is staged for one process is direct for another one only if one of them has AMD's GPUs.
constexpr std::array candidates = {candidate{rocm, "rocm", "rocm", true}, candidate{ze_device, "ze", "ze-device", true},
                                   candidate{cuda, "cuda", "cuda", false}};

bool is_free(const candidate& wanted, const gpu_facts& facts)
{
    const bool is_of_a_gpu = std::ranges::any_of(
        facts.components, [&](const std::string& name) { return name.starts_with(wanted.components); });
    return wanted.type < static_cast<int>(facts.num_memory_types) && !is_of_a_gpu &&
           !(wanted.type == rocm && facts.cards_register_rocm) && !(wanted.type == cuda && facts.cards_register_cuda) &&
           !(wanted.type == ze_device && facts.cards_register_ze) && !facts.old_protocols;
}

// Then each use of a window would make UCP register all addresses of windows of its type.
bool is_registered_whole(const candidate& wanted, const gpu_facts& facts)
{
    return std::ranges::any_of(facts.types_registered_whole | std::views::split(','), [&](auto listed) {
        const std::string_view name(listed.begin(), listed.end());
        return name == wanted.name || name == "all";
    });
}

// A component of a GPU may be there without the GPU. Only these are asked: one of ours would come back here.
std::vector<std::string> gpu_components()
{
    auto names = components_with_domains([](const std::string& name) {
        return std::ranges::any_of(candidates,
                                   [&](const candidate& each) { return name.starts_with(each.components); });
    });
    if (!names) {
        names.emplace();
        for (const candidate& each : candidates) {
            names->emplace_back(each.components); // nothing is known to be free
        }
    }
    return std::move(*names);
}

// UCX's component "ib" registers memory of type ROCM if this file exists, whether or not UCX has a component for such
// memory: uct_ib_md_open_common() in uct/ib/base/ib_md.c.
bool has_rocm_driver()
{
    return access("/dev/kfd", F_OK) == 0;
}

// The same for CUDA: uct_ib_check_gpudirect_driver() is called for these, for the last one by cards of EFA.
bool has_cuda_driver()
{
    return std::ranges::any_of(std::array{"/sys/kernel/mm/memory_peers/nv_mem/version",
                                          "/sys/module/nvidia_peermem/version", "/sys/module/nv_peer_mem/version",
                                          "/sys/module/efa_nv_peermem/version"},
                               [](const char* file) { return access(file, F_OK) == 0; });
}

// The same for Intel's GPUs, from UCX 1.21 on.
bool cards_register_ze()
{
    return access("/sys/module/xe/srcversion", F_OK) == 0;
}

std::string types_registered_whole()
{
    constexpr const char* whole_types_option = "MEMTYPE_REG_WHOLE_ALLOC_TYPES";
    auto listed                              = configured_text("", whole_types_option);
    return listed.empty() ? "cuda" : listed; // UCX's default
}

const char* name_of(std::optional<ucs_memory_type_t> type)
{
    const auto* const named =
        std::ranges::find_if(candidates, [&](const candidate& each) { return type == each.type; });
    return named != candidates.end() ? named->name : "rdma, as all others: no other type is free";
}

window_types choose_and_log()
{
    const auto chosen =
        choose_window_types({attached()->num_memory_types, gpu_components(), has_rocm_driver(), has_cuda_driver(),
                             has_old_protocols(), cards_register_ze(), types_registered_whole()});
    ucs_debug("ucx-layout: windows without hardware keys have the memory type %s; those that peers of the host copy in "
              "one pass: %s",
              name_of(chosen.staged), name_of(chosen.direct));
    return chosen;
}

} // namespace

std::uint64_t window_types::own() const
{
    return UCS_BIT(UCS_MEMORY_TYPE_RDMA) | (staged ? UCS_BIT(*staged) : 0) | (direct ? UCS_BIT(*direct) : 0);
}

window_types choose_window_types(const gpu_facts& facts)
{
    window_types chosen{.staged = std::nullopt, .direct = std::nullopt, .served = UCS_BIT(UCS_MEMORY_TYPE_RDMA)};
    for (const candidate& each : candidates) {
        if (!is_free(each, facts)) {
            continue;
        }
        chosen.served |= UCS_BIT(each.type);
        if (is_registered_whole(each, facts)) {
            continue;
        }
        if (!chosen.staged && each.may_be_staged) {
            chosen.staged = each.type;
        } else if (chosen.staged && !chosen.direct) {
            chosen.direct = each.type;
        }
    }
    return chosen;
}

const window_types& types_of_windows()
{
    static constexpr window_types only_rdma{
        .staged = std::nullopt, .direct = std::nullopt, .served = UCS_BIT(UCS_MEMORY_TYPE_RDMA)};
    if (attached() == nullptr) {
        return only_rdma;
    }
    static const window_types chosen = choose_and_log();
    return chosen;
}

} // namespace ucxl::abi
