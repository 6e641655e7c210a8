// The C functions of uct_mlx5_layout.h for regions. They check parameters, choose statuses and log errors.
#include <string>
#include <unordered_set>

#include "api_support.h"
#include "atomic_words.h"
#include "bind.h"
#include "describe.h"

using namespace ucxl;
using namespace ucxl::mlx5;

namespace
{

constexpr std::uint32_t default_entries = 64;
constexpr unsigned known_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned known_flags = UCT_MLX5_LAYOUT_SET_WITH_POST_WR | UCT_MLX5_LAYOUT_SET_AVOID_INVALIDATION;

result<void> check_possible(const domain& shared, const region_options& options)
{
    if (shared.queue.has_failed()) {
        return device_has_failed();
    }
    if (options.address != 0 && shared.found.address == address_method::none) {
        return fail(errc::unsupported,
                    std::format("address 0x{:x}: all keys of this device begin at 0", options.address));
    }
    if (options.rights.remote_atomic && !shared.found.atomics) {
        return fail(errc::unsupported, "access has IBV_ACCESS_REMOTE_ATOMIC, but the device does no atomic "
                                       "operations through layout keys");
    }
    return {};
}

ucs_status_t create_region(const char* function, domain& shared, const uct_mlx5_layout_region_params_t& params,
                           uct_mlx5_layout_region_h* region_p)
{
    constexpr std::uint64_t known = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS |
                                    UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES |
                                    UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ADDRESS;
    if (const ucs_status_t bad = check_field_mask(function, params.field_mask, known); bad != UCS_OK) {
        return bad;
    }
    const unsigned access = (params.field_mask & UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS) != 0 ? params.access : 0;
    if ((access & ~known_access) != 0) {
        return log_invalid_param(function, std::format("access 0x{:x} has bits 0x{:x}, which a region does not support",
                                                       access, access & ~known_access));
    }
    region_options options;
    options.rights      = {(access & IBV_ACCESS_LOCAL_WRITE) != 0, (access & IBV_ACCESS_REMOTE_READ) != 0,
                           (access & IBV_ACCESS_REMOTE_WRITE) != 0, (access & IBV_ACCESS_REMOTE_ATOMIC) != 0};
    options.max_entries = (params.field_mask & UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES) != 0 ? params.max_entries
                                                                                                    : default_entries;
    options.address     = (params.field_mask & UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ADDRESS) != 0 ? params.address : 0;
    if (const result<void> possible = check_possible(shared, options); !possible) {
        return log_error(function, possible.error());
    }
    const std::uint32_t most = shared.caps.limits.max_list_entries;
    if (options.max_entries == 0 || options.max_entries > most) {
        return log_invalid_param(function,
                                 std::format("max_entries {} is not from 1 to {}", options.max_entries, most));
    }
    // The device counts entries in groups of four, and a repeat block begins with a header.
    options.max_entries                     = std::max<std::uint32_t>((options.max_entries + 3) / 4 * 4, 4);
    result<std::unique_ptr<region>> created = region::create(shared, options);
    if (!created) {
        return log_error(function, created.error());
    }
    *region_p = new uct_mlx5_layout_region{std::move(*created)};
    return UCS_OK;
}

constexpr std::uint64_t known_attr = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY |
                                     UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_ADDRESS |
                                     UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST |
                                     UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_WHOLE_WORDS;

ucs_status_t query_region(const char* function, uct_mlx5_layout_region_h handle, uct_mlx5_layout_region_attr_t* attr)
{
    if (const ucs_status_t bad = check_required(function, {{"region", handle}, {"attr", attr}}); bad != UCS_OK) {
        return bad;
    }
    const std::uint64_t mask = attr->field_mask;
    if (const ucs_status_t bad = check_field_mask(function, mask, known_attr); bad != UCS_OK) {
        return bad;
    }
    const region& asked   = *handle->value;
    const plan_cost& cost = asked.cost();
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY, attr->lkey, asked.key());
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY, attr->rkey, asked.key());
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_ADDRESS, attr->address, asked.address());
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH, attr->length, asked.length());
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST, attr->num_keys, cost.keys);
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST, attr->num_entries, cost.octowords);
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST, attr->depth, cost.depth);
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST, attr->num_repeats, cost.repeat_blocks);
    fill(mask, UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST, attr->num_fetched, cost.pointer_binds);
    if ((mask & UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_WHOLE_WORDS) != 0) {
        attr->whole_words = has_whole_words(asked) ? 1 : 0;
    }
    return UCS_OK;
}

// How an error is logged: wire forms come from peers, whose errors must not fill the disk with messages.
using log_function = ucs_status_t (*)(const char* function, const error& error);

// describe() returns a result<description>.
template <typename Describe>
ucs_status_t set(const char* function, uct_mlx5_layout_region_h handle, unsigned flags, const Describe& describe,
                 log_function log = log_error)
{
    if (const ucs_status_t bad = check_required(function, {{"region", handle}}); bad != UCS_OK) {
        return bad;
    }
    if ((flags & ~known_flags) != 0) {
        return log_invalid_param(function,
                                 std::format("flags 0x{:x} have unknown bits 0x{:x}", flags, flags & ~known_flags));
    }
    const result<description> described = describe();
    if (!described) {
        return log(function, described.error());
    }
    if (const auto prepared = handle->value->prepare(described->shape, described->bases); !prepared) {
        return log(function, prepared.error());
    }
    handle->replace = (flags & UCT_MLX5_LAYOUT_SET_AVOID_INVALIDATION) == 0;
    if ((flags & UCT_MLX5_LAYOUT_SET_WITH_POST_WR) != 0) {
        return UCS_OK;
    }
    region* const one = handle->value.get();
    return status_of(function, bind_all(std::span(&one, 1), handle->replace));
}

// Checks that the regions are of one domain and, if needed, all prepared.
result<std::vector<region*>> collect(const uct_mlx5_layout_region_h* regions, std::size_t count, bool prepared)
{
    if (count == 0 || regions == nullptr) {
        return fail(errc::invalid_param, count == 0 ? "num_regions is 0" : "regions is NULL");
    }
    std::vector<region*> all;
    all.reserve(count);
    std::unordered_set<region*> known;
    for (std::size_t i = 0; i < count; ++i) {
        if (regions[i] == nullptr) {
            return fail(errc::invalid_param, std::format("regions[{}] is NULL", i));
        }
        region* const one = regions[i]->value.get();
        if (!known.insert(one).second) {
            return fail(errc::invalid_param, std::format("regions[{}] appears twice", i));
        }
        if (&one->owner() != &regions[0]->value->owner()) {
            return fail(errc::invalid_param, std::format("regions[{}] belongs to another domain", i));
        }
        if (prepared && !one->is_prepared()) {
            return fail(errc::invalid_param,
                        std::format("regions[{}] has no layout set with UCT_MLX5_LAYOUT_SET_WITH_POST_WR", i));
        }
        all.push_back(one);
    }
    return all;
}

template <typename Fn>
ucs_status_t for_all(const char* function, const uct_mlx5_layout_region_h* regions, std::size_t count, bool prepared,
                     const Fn& act)
{
    return guarded(function, [&] {
        const auto all = collect(regions, count, prepared);
        return all ? status_of(function, act(std::span(*all))) : log_error(function, all.error());
    });
}

} // namespace

ucs_status_t uct_mlx5_layout_region_create(uct_mlx5_layout_domain_h domain,
                                           const uct_mlx5_layout_region_params_t* params,
                                           uct_mlx5_layout_region_h* region_p)
{
    return guarded(__func__, [&, function = __func__] {
        const ucs_status_t bad =
            check_required(function, {{"domain", domain}, {"params", params}, {"region_p", region_p}});
        return bad != UCS_OK ? bad : create_region(function, domain->value, *params, region_p);
    });
}

void uct_mlx5_layout_region_destroy(uct_mlx5_layout_region_h region)
{
    delete region;
}

ucs_status_t uct_mlx5_layout_region_query(uct_mlx5_layout_region_h region, uct_mlx5_layout_region_attr_t* attr)
{
    return guarded(__func__, [&, function = __func__] { return query_region(function, region, attr); });
}

ucs_status_t uct_mlx5_layout_region_check_atomic(uct_mlx5_layout_region_h region, uint64_t address)
{
    return guarded(__func__, [&, function = __func__] {
        const ucs_status_t bad = check_required(function, {{"region", region}});
        return bad != UCS_OK ? bad : status_of(function, check_word(*region->value, address));
    });
}

ucs_status_t uct_mlx5_layout_set_sg(uct_mlx5_layout_region_h region, unsigned flags, size_t num_sge,
                                    const ibv_sge* sg_list)
{
    return guarded(__func__, [&, function = __func__] {
        return set(function, region, flags, [&] { return describe_list(sg_list, num_sge); });
    });
}

ucs_status_t uct_mlx5_layout_set_interleaved(uct_mlx5_layout_region_h region, unsigned flags, size_t num_items,
                                             const uct_mlx5_layout_item_t* items)
{
    return guarded(__func__, [&, function = __func__] {
        return set(function, region, flags, [&] { return describe_interleaved(items, num_items); });
    });
}

ucs_status_t uct_mlx5_layout_set_wire(uct_mlx5_layout_region_h region, unsigned flags, const void* wire, size_t length,
                                      const uct_mlx5_layout_base_t* bases, size_t num_bases)
{
    return guarded(__func__, [&, function = __func__] {
        return set(
            function, region, flags, [&] { return describe_wire(wire, length, bases, num_bases); }, log_peer_error);
    });
}

ucs_status_t uct_mlx5_layout_post_bind(ibv_qp* qp, const uct_mlx5_layout_region_h* regions, size_t num_regions,
                                       uint64_t wr_id, int signaled)
{
    return for_all(__func__, regions, num_regions, true, [&](std::span<region* const> all) {
        return qp == nullptr ? result<void>(fail(errc::invalid_param, "qp is NULL"))
                             : post_all(qp, all, wr_id, signaled != 0);
    });
}

ucs_status_t uct_mlx5_layout_bind(const uct_mlx5_layout_region_h* regions, size_t num_regions)
{
    return for_all(__func__, regions, num_regions, true, [&](std::span<region* const> all) {
        const bool replace = std::ranges::any_of(std::span(regions, num_regions),
                                                 [](uct_mlx5_layout_region_h one) { return one->replace; });
        return bind_all(all, replace);
    });
}

ucs_status_t uct_mlx5_layout_invalidate(const uct_mlx5_layout_region_h* regions, size_t num_regions)
{
    return for_all(__func__, regions, num_regions, false,
                   [](std::span<region* const> all) { return invalidate_all(all); });
}
