// The C functions of uct_mlx5_layout.h about devices and domains: parameters checked, statuses chosen and logged.
#include "api_support.h"
#include "explain.h"
#include "named_device.h"
#include "ucs/layout/wire.h"

using namespace ucxl;
using namespace ucxl::mlx5;

namespace
{

constexpr std::uint8_t default_port   = 1;
constexpr std::uint32_t default_depth = 128;
constexpr std::uint32_t max_depth     = 4096;

constexpr const char* published_device = "published";

// What lists and their nesting give by themselves.
constexpr std::uint64_t always =
    UCT_MLX5_LAYOUT_CAP_SG | UCT_MLX5_LAYOUT_CAP_INTERLEAVED | UCT_MLX5_LAYOUT_CAP_INTERLEAVED_REPEAT |
    UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_REPEAT | UCT_MLX5_LAYOUT_CAP_INTERLEAVED_NONUNIFORM_TOTAL;

const char* name_of(address_method method)
{
    return method == address_method::umr ? "umr" : method == address_method::ksm ? "ksm" : "nothing";
}

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

// What the device says, without what does not work.
capabilities narrowed(capabilities said, const self_test_result& found, std::size_t longest_request)
{
    said.limits.max_inline_entries = static_cast<std::uint32_t>(max_inline_entries(key_kind::klm, longest_request));
    said.limits.repeat_blocks      = found.repeat_blocks;
    said.limits.max_nesting        = found.nesting ? said.limits.max_nesting : 1;
    said.atomics                   = found.atomics;
    return said;
}

ucs_status_t query(const char* function, ibv_context* context, uct_mlx5_layout_attr_t* attr)
{
    const outcome<capabilities> caps = query_capabilities(context);
    if (!caps) {
        return log_failure(function, caps.error());
    }
    const device_limits& limits = caps->limits;
    uct_mlx5_layout_attr_t found{};
    found.flags = always | UCT_MLX5_LAYOUT_CAP_ADDRESS | (limits.repeat_blocks ? UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK : 0) |
                  (caps->atomics ? UCT_MLX5_LAYOUT_CAP_ATOMIC : 0);
    found.max_num_sg                 = limits.max_list_entries;
    found.max_inline_num_sg          = static_cast<std::uint32_t>(max_inline_entries(key_kind::klm));
    found.max_num_interleaved        = limits.max_repeat_entries;
    found.max_inline_num_interleaved = static_cast<std::uint32_t>(max_inline_entries(key_kind::repeat));
    found.max_mr_stride_dimension    = limits::max_dims;
    found.max_mr_nesting_level       = limits.max_nesting;
    *attr                            = found;
    return UCS_OK;
}

ucs_status_t open_domain(const char* function, const uct_mlx5_layout_domain_params_t& params,
                         uct_mlx5_layout_domain_h* domain_p)
{
    constexpr std::uint64_t known =
        UCT_MLX5_LAYOUT_DOMAIN_FIELD_PD | UCT_MLX5_LAYOUT_DOMAIN_FIELD_PORT | UCT_MLX5_LAYOUT_DOMAIN_FIELD_DEPTH;
    if (const ucs_status_t bad = check_field_mask(function, params.field_mask, known); bad != UCS_OK) {
        return bad;
    }
    if ((params.field_mask & UCT_MLX5_LAYOUT_DOMAIN_FIELD_PD) == 0 || params.pd == nullptr) {
        return invalid(function, "pd is required");
    }
    const std::uint8_t port = (params.field_mask & UCT_MLX5_LAYOUT_DOMAIN_FIELD_PORT) != 0 ? params.port : default_port;
    const std::uint32_t depth =
        (params.field_mask & UCT_MLX5_LAYOUT_DOMAIN_FIELD_DEPTH) != 0 ? params.bind_depth : default_depth;
    if (depth == 0 || depth > max_depth) {
        return invalid(function, std::format("bind_depth {} is not from 1 to {}", depth, max_depth));
    }
    const outcome<capabilities> caps = query_capabilities(params.pd->context);
    if (!caps) {
        return log_failure(function, caps.error());
    }
    outcome<bind_queue> queue = bind_queue::open(params.pd, port, depth);
    if (!queue) {
        return log_failure(function, queue.error());
    }
    const outcome<self_test_result> found = test_device(params.pd, *queue, *caps, chosen_address_method());
    if (!found) {
        return log_failure(function, found.error());
    }
    ucs_debug("%s: the device does repeat blocks %d, nesting %d, atomics %d, addresses by %s", function,
              found->repeat_blocks, found->nesting, found->atomics, name_of(found->address));
    const capabilities works = narrowed(*caps, *found, queue->max_request());
    *domain_p                = new uct_mlx5_layout_domain{domain(params.pd, works, *found, std::move(*queue))};
    return UCS_OK;
}

void describe(const domain& of, uct_mlx5_layout_domain_attr_t& attr)
{
    attr = {always | (of.found.address != address_method::none ? UCT_MLX5_LAYOUT_CAP_ADDRESS : 0) |
                (of.found.repeat_blocks ? UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK : 0) |
                (of.found.atomics ? UCT_MLX5_LAYOUT_CAP_ATOMIC : 0),
            of.caps.limits.max_nesting, to_c(of.found.address)};
}

ucs_status_t explain_on(const char* function, const char* device, std::span<const std::byte> wire, FILE* stream)
{
    const result<layout_ptr> of = unpack_wire(wire);
    if (!of) {
        return log_error(function, of.error());
    }
    capabilities caps;
    std::string name = published_device;
    if (device == nullptr || name != device) {
        const outcome<named_device> opened = named_device::open(device);
        if (!opened) {
            return log_failure(function, opened.error());
        }
        const outcome<capabilities> said = query_capabilities(opened->context());
        if (!said) {
            return log_failure(function, said.error());
        }
        caps = *said;
        name = opened->name();
    }
    const device_limits& limits = caps.limits;
    const std::string text =
        std::format("{:<15}{}: {} entries in a list, {} in a request, {}, keys nested {} deep\n", "device", name,
                    limits.max_list_entries, limits.max_inline_entries,
                    limits.repeat_blocks ? "repeat blocks" : "no repeat blocks", limits.max_nesting) +
        explain(**of, limits);
    if (std::fputs(text.c_str(), stream) < 0) {
        return log_failure(function, refused("writing").error());
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
    return guarded(__func__, [&, function = __func__] { return open_domain(function, *params, domain_p); });
}

void uct_mlx5_layout_domain_close(uct_mlx5_layout_domain_h domain)
{
    delete domain;
}

void uct_mlx5_layout_domain_query(uct_mlx5_layout_domain_h domain, uct_mlx5_layout_domain_attr_t* attr)
{
    describe(domain->value, *attr);
}

void uct_mlx5_layout_domain_handle_event(uct_mlx5_layout_domain_h domain, const ibv_async_event* event)
{
    if (event->event_type == IBV_EVENT_DEVICE_FATAL) {
        domain->value.queue.give_up();
    }
}

ucs_status_t uct_mlx5_layout_explain(const char* device, const void* wire, size_t length, FILE* stream)
{
    return guarded(__func__, [&, function = __func__] {
        return explain_on(function, device, std::span(static_cast<const std::byte*>(wire), length), stream);
    });
}
