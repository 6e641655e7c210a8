// ucp_layout_query, ucp_layout_query_bounds, ucp_layout_print and ucp_layout_walk.
#include "handle.h"
#include "ucs/layout/text.h"
#include "ucs/layout/walk.h"
#include "ucs/layout/wire.h"
#include "ucs/sys/argument.h"

#include <string>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields = UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES |
                                       UCP_LAYOUT_ATTR_FIELD_EXTENT | UCP_LAYOUT_ATTR_FIELD_BLOCKS |
                                       UCP_LAYOUT_ATTR_FIELD_DEPTH | UCP_LAYOUT_ATTR_FIELD_OVERLAP |
                                       UCP_LAYOUT_ATTR_FIELD_HASH | UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH;
constexpr std::uint64_t known_bounds = UCP_LAYOUT_BOUNDS_FIELD_TRUE_LB | UCP_LAYOUT_BOUNDS_FIELD_TRUE_UB |
                                       UCP_LAYOUT_BOUNDS_FIELD_LB | UCP_LAYOUT_BOUNDS_FIELD_UB;
constexpr unsigned known_prints = UCP_LAYOUT_PRINT_TEXT | UCP_LAYOUT_PRINT_NORMAL | UCP_LAYOUT_PRINT_PLAN;

constexpr ucp_layout_overlap_t to_c(overlap from)
{
    switch (from) {
    case overlap::none:
        return UCP_LAYOUT_OVERLAP_NONE;
    case overlap::some:
        return UCP_LAYOUT_OVERLAP_SOME;
    case overlap::maybe:
        return UCP_LAYOUT_OVERLAP_MAYBE;
    }
    return UCP_LAYOUT_OVERLAP_MAYBE;
}

ucs_status_t query(const layout& layout, ucp_layout_attr_t& attr)
{
    const auto status = check_field_mask("ucp_layout_query", attr.field_mask, known_fields);
    if (status != UCS_OK) {
        return status;
    }
    const auto asked = [&](std::uint64_t field) { return (attr.field_mask & field) != 0; };
    // First, because it may find no memory.
    if (asked(UCP_LAYOUT_ATTR_FIELD_OVERLAP)) {
        attr.overlap = to_c(layout.overlap());
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH)) {
        attr.packed_length = layout.packed_length();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES)) {
        attr.num_sources = layout.num_sources();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_EXTENT)) {
        attr.extent = layout.extent();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_BLOCKS)) {
        attr.num_blocks       = layout.blocks().count;
        attr.min_block_length = layout.blocks().min_length;
        attr.max_block_length = layout.blocks().max_length;
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_DEPTH)) {
        attr.depth = layout.depth();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_HASH)) {
        attr.hash = layout.hash();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH)) {
        attr.serialized_length = wire_length(layout);
    }
    return UCS_OK;
}

ucs_status_t query_bounds(const layout& layout, std::uint32_t source, ucp_layout_bounds_t& bounds)
{
    const auto status = check_field_mask("ucp_layout_query_bounds", bounds.field_mask, known_bounds);
    if (status != UCS_OK) {
        return status;
    }
    if (source >= layout.num_sources()) {
        ucs_error("ucp_layout_query_bounds: source is %u, the layout has %u sources", source, layout.num_sources());
        return UCS_ERR_INVALID_PARAM;
    }
    const auto& from = layout.bounds(source);
    const auto give  = [&](std::uint64_t field, ptrdiff_t& to, std::int64_t value) {
        if (bounds.field_mask & field) {
            to = value;
        }
    };
    give(UCP_LAYOUT_BOUNDS_FIELD_TRUE_LB, bounds.true_lb, from.true_lb);
    give(UCP_LAYOUT_BOUNDS_FIELD_TRUE_UB, bounds.true_ub, from.true_ub);
    give(UCP_LAYOUT_BOUNDS_FIELD_LB, bounds.lb, from.lb);
    give(UCP_LAYOUT_BOUNDS_FIELD_UB, bounds.ub, from.ub);
    return UCS_OK;
}

ucs_status_t print(ucp_layout& layout, FILE* stream, unsigned flags)
{
    if ((flags & ~known_prints) != 0) {
        ucs_error("ucp_layout_print: flags 0x%x has unknown bits 0x%x", flags, flags & ~known_prints);
        return UCS_ERR_INVALID_PARAM;
    }
    std::string text;
    if (flags & UCP_LAYOUT_PRINT_TEXT) {
        text += to_text(*layout.value) + '\n';
    }
    if (flags & UCP_LAYOUT_PRINT_NORMAL) {
        text += describe(*layout.value);
    }
    if (flags & UCP_LAYOUT_PRINT_PLAN) {
        auto plan = layout.plan();
        if (!plan) {
            return log_error("ucp_layout_print", plan.error());
        }
        text += (*plan)->describe();
    }
    if (std::fputs(text.c_str(), stream) < 0 || std::fflush(stream) != 0) {
        ucs_error("ucp_layout_print: writing failed: %m");
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

ucs_status_t walk(const layout& layout, std::size_t offset, std::size_t length, ucp_layout_walk_cb_t cb, void* arg)
{
    const std::uint64_t packed_length = layout.packed_length();
    if (offset > packed_length || length > packed_length - offset) {
        ucs_error("ucp_layout_walk: offset %zu and length %zu exceed the packed length %lu", offset, length,
                  packed_length);
        return UCS_ERR_INVALID_PARAM;
    }
    ucs_status_t status = UCS_OK;
    for_each_block(layout, offset, length, [&](const placed_block& block) {
        status = cb(arg, block.source, block.offset, block.length);
        return status == UCS_OK;
    });
    return status;
}

} // namespace

ucs_status_t ucp_layout_query(ucp_layout_h layout, ucp_layout_attr_t* attr)
{
    return checked(__func__, {{"layout", layout}, {"attr", attr}}, [&] { return query(*layout->value, *attr); });
}

ucs_status_t ucp_layout_query_bounds(ucp_layout_h layout, uint32_t source, ucp_layout_bounds_t* bounds)
{
    return checked(__func__, {{"layout", layout}, {"bounds", bounds}},
                   [&] { return query_bounds(*layout->value, source, *bounds); });
}

ucs_status_t ucp_layout_print(ucp_layout_h layout, FILE* stream, unsigned flags)
{
    return checked(__func__, {{"layout", layout}, {"stream", stream}}, [&] { return print(*layout, stream, flags); });
}

ucs_status_t ucp_layout_walk(ucp_layout_h layout, size_t offset, size_t length, ucp_layout_walk_cb_t cb, void* arg)
{
    return checked(__func__, {{"layout", layout}, {"cb", reinterpret_cast<const void*>(cb)}},
                   [&] { return walk(*layout->value, offset, length, cb, arg); });
}
