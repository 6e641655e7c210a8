// The C functions of uct_mlx5_layout.h for devices and domains. They check parameters, choose statuses and log errors.
#include "api_support.h"
#include "device_report.h"
#include "explain.h"
#include "named_device.h"
#include "ucs/layout/wire.h"

using namespace ucxl;
using namespace ucxl::mlx5;

namespace
{

constexpr const char* published_device = "published";

// What lists and nested lists provide.
constexpr std::uint64_t always =
    UCT_MLX5_LAYOUT_CAP_SG | UCT_MLX5_LAYOUT_CAP_INTERLEAVED | UCT_MLX5_LAYOUT_CAP_INTERLEAVED_REPEAT |
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_REPEAT | UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_TOTAL;

uct_mlx5_layout_address_method_t to_c(address_method method)
{
    switch (method) {
    case address_method::none:
        return UCT_MLX5_LAYOUT_ADDRESS_NONE;
    case address_method::umr:
        return UCT_MLX5_LAYOUT_ADDRESS_UMR;
    case address_method::ksm:
        return UCT_MLX5_LAYOUT_ADDRESS_KSM;
    }
    return UCT_MLX5_LAYOUT_ADDRESS_NONE;
}

std::uint64_t flags_of_keys(const capabilities& caps)
{
    return (caps.atomics ? UCT_MLX5_LAYOUT_CAP_ATOMIC : 0) | (caps.pointer_entries ? UCT_MLX5_LAYOUT_CAP_POINTER : 0) |
           (caps.nested_by_local_rights ? UCT_MLX5_LAYOUT_CAP_LOCAL_NESTED : 0) |
           (caps.atomics && caps.atomics_lock_memory ? UCT_MLX5_LAYOUT_CAP_ATOMIC_ANY_KEY : 0);
}

constexpr std::uint64_t known_attr = UCT_MLX5_LAYOUT_ATTR_FIELD_FLAGS | UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_SG |
                                     UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_SG |
                                     UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_INTERLEAVED |
                                     UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_INTERLEAVED |
                                     UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_DIMS | UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_DEPTH;

ucs_status_t query(const char* function, ibv_context* context, uct_mlx5_layout_attr_t* attr)
{
    if (const ucs_status_t bad = check_required(function, {{"context", context}, {"attr", attr}}); bad != UCS_OK) {
        return bad;
    }
    const std::uint64_t mask = attr->field_mask;
    if (const ucs_status_t bad = check_field_mask(function, mask, known_attr); bad != UCS_OK) {
        return bad;
    }
    const result<capabilities> caps = query_capabilities(context);
    if (!caps) {
        return log_error(function, caps.error());
    }
    const device_limits& limits = caps->limits;
    fill(mask, UCT_MLX5_LAYOUT_ATTR_FIELD_FLAGS, attr->flags,
         always | UCT_MLX5_LAYOUT_CAP_ADDRESS | (limits.repeat_blocks ? UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK : 0) |
             flags_of_keys(*caps));
    fill(mask, UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_SG, attr->max_num_sg, limits.max_list_entries);
    fill(mask, UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_SG, attr->max_inline_num_sg,
         max_inline_entries(key_kind::klm));
    fill(mask, UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_INTERLEAVED, attr->max_num_interleaved, limits.max_repeat_entries);
    fill(mask, UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_INTERLEAVED, attr->max_inline_num_interleaved,
         max_inline_entries(key_kind::repeat));
    fill(mask, UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_DIMS, attr->max_num_dims, limits::max_dims);
    fill(mask, UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_DEPTH, attr->max_depth, limits.max_nesting);
    return UCS_OK;
}

ucs_status_t open_domain(const char* function, const uct_mlx5_layout_domain_params_t& params,
                         uct_mlx5_layout_domain_h* domain_p)
{
    constexpr std::uint64_t known = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD | UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PORT |
                                    UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_BIND_DEPTH;
    if (const ucs_status_t bad = check_field_mask(function, params.field_mask, known); bad != UCS_OK) {
        return bad;
    }
    if ((params.field_mask & UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD) == 0 || params.pd == nullptr) {
        return log_invalid_param(function, "pd is required");
    }
    const std::uint8_t port =
        (params.field_mask & UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PORT) != 0 ? params.port : domain::default_port;
    const std::uint32_t depth = (params.field_mask & UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_BIND_DEPTH) != 0
                                    ? params.bind_depth
                                    : domain::default_depth;
    if (depth == 0 || depth > domain::highest_depth) {
        return log_invalid_param(function,
                                 std::format("bind_depth {} is not from 1 to {}", depth, domain::highest_depth));
    }
    auto parts = domain::open(params.pd, port, depth);
    if (!parts) {
        return log_error(function, parts.error());
    }
    std::unique_ptr<uct_mlx5_layout_domain> opened(new uct_mlx5_layout_domain{domain(params.pd, std::move(*parts))});
    ucs_debug("%s: the device does %s", function, choices(opened->value).c_str());
    *domain_p = opened.release();
    return UCS_OK;
}

ucs_status_t query_domain(const char* function, uct_mlx5_layout_domain_h handle, uct_mlx5_layout_domain_attr_t* attr)
{
    if (const ucs_status_t bad = check_required(function, {{"domain", handle}, {"attr", attr}}); bad != UCS_OK) {
        return bad;
    }
    const std::uint64_t mask      = attr->field_mask;
    constexpr std::uint64_t known = UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_FLAGS |
                                    UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_MAX_DEPTH |
                                    UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_ADDRESS_METHOD;
    if (const ucs_status_t bad = check_field_mask(function, mask, known); bad != UCS_OK) {
        return bad;
    }
    const self_test_result& found = handle->value.found;
    fill(mask, UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_FLAGS, attr->flags,
         always | (found.address != address_method::none ? UCT_MLX5_LAYOUT_CAP_ADDRESS : 0) |
             (found.repeat_blocks ? UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK : 0) | flags_of_keys(handle->value.caps));
    fill(mask, UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_MAX_DEPTH, attr->max_depth, handle->value.caps.limits.max_nesting);
    fill(mask, UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_ADDRESS_METHOD, attr->address_method, to_c(found.address));
    return UCS_OK;
}

ucs_status_t explain_on(const char* function, const char* device, std::span<const std::byte> wire, FILE* stream)
{
    if (const ucs_status_t bad = check_required(function, {{"wire", wire.data()}, {"stream", stream}}); bad != UCS_OK) {
        return bad;
    }
    const result<layout_ptr> described = unpack_wire(wire);
    if (!described) {
        return log_error(function, described.error());
    }
    capabilities caps;
    std::string name = published_device;
    if (device == nullptr || name != device) {
        const result<named_device> opened = named_device::open(device);
        if (!opened) {
            return log_error(function, opened.error());
        }
        const result<capabilities> said = query_capabilities(opened->context());
        if (!said) {
            return log_error(function, said.error());
        }
        caps = *said;
        name = opened->name();
    }
    const device_limits& limits = caps.limits;
    const std::string text =
        std::format("{:<15}{}: {} entries in a list, {} in a request, {}, keys nested {} deep\n", "device", name,
                    limits.max_list_entries, limits.max_inline_entries,
                    limits.repeat_blocks ? "repeat blocks" : "no repeat blocks", limits.max_nesting) +
        explain(**described, limits);
    if (std::fputs(text.c_str(), stream) < 0) {
        return log_error(function, fail_errno("writing").error());
    }
    return UCS_OK;
}

ucs_status_t print_report(const char* function, const char* device, FILE* stream)
{
    if (const ucs_status_t bad = check_required(function, {{"stream", stream}}); bad != UCS_OK) {
        return bad;
    }
    const result<std::string> text =
        named_device::open(device).and_then([](const named_device& opened) { return report(opened); });
    if (!text) {
        return log_error(function, text.error());
    }
    if (std::fputs(text->c_str(), stream) < 0) {
        return log_error(function, fail_errno("writing").error());
    }
    return UCS_OK;
}

} // namespace

ucs_status_t uct_mlx5_layout_query(ibv_context* context, uct_mlx5_layout_attr_t* attr)
{
    return guarded(__func__, [&, function = __func__] { return query(function, context, attr); });
}

ucs_status_t uct_mlx5_layout_domain_open(const uct_mlx5_layout_domain_params_t* params,
                                         uct_mlx5_layout_domain_h* domain_p)
{
    return guarded(__func__, [&, function = __func__] {
        const ucs_status_t bad = check_required(function, {{"params", params}, {"domain_p", domain_p}});
        return bad != UCS_OK ? bad : open_domain(function, *params, domain_p);
    });
}

void uct_mlx5_layout_domain_close(uct_mlx5_layout_domain_h domain)
{
    delete domain;
}

ucs_status_t uct_mlx5_layout_domain_query(uct_mlx5_layout_domain_h domain, uct_mlx5_layout_domain_attr_t* attr)
{
    return guarded(__func__, [&, function = __func__] { return query_domain(function, domain, attr); });
}

ucs_status_t uct_mlx5_layout_domain_handle_event(uct_mlx5_layout_domain_h domain, const ibv_async_event* event)
{
    return guarded(__func__, [&, function = __func__] {
        const ucs_status_t bad = check_required(function, {{"domain", domain}, {"event", event}});
        if (bad == UCS_OK && event->event_type == IBV_EVENT_DEVICE_FATAL) {
            domain->value.queue.give_up();
        }
        return bad;
    });
}

ucs_status_t uct_mlx5_layout_print_device(const char* device, FILE* stream)
{
    return guarded(__func__, [&, function = __func__] { return print_report(function, device, stream); });
}

ucs_status_t uct_mlx5_layout_explain(const char* device, const void* wire, size_t length, FILE* stream)
{
    return guarded(__func__, [&, function = __func__] {
        return explain_on(function, device, std::span(static_cast<const std::byte*>(wire), length), stream);
    });
}
