// ucp_layout_query, _print and _walk.
#include "handle.h"
#include "ucs/layout/text.h"
#include "ucs/layout/walk.h"
#include "ucs/layout/wire.h"
#include "ucs/sys/status.h"

#include <string>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields =
    UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES | UCP_LAYOUT_ATTR_FIELD_BOUNDS |
    UCP_LAYOUT_ATTR_FIELD_EXTENT | UCP_LAYOUT_ATTR_FIELD_BLOCKS | UCP_LAYOUT_ATTR_FIELD_DEPTH |
    UCP_LAYOUT_ATTR_FIELD_OVERLAP | UCP_LAYOUT_ATTR_FIELD_HASH | UCP_LAYOUT_ATTR_FIELD_WIRE_LENGTH;

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

void fill_bounds(const layout_bounds& from, ucp_layout_attr_t& attr)
{
    attr.true_lb = from.true_lb;
    attr.true_ub = from.true_ub;
    attr.lb      = from.lb;
    attr.ub      = from.ub;
}

void fill(const layout& of, ucp_layout_attr_t& attr)
{
    const auto asked = [&](std::uint64_t field) { return (attr.field_mask & field) != 0; };
    if (asked(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH)) {
        attr.packed_length = of.packed_length();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES)) {
        attr.num_sources = of.num_sources();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_BOUNDS)) {
        fill_bounds(of.bounds(attr.source), attr);
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_EXTENT)) {
        attr.extent = of.extent();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_BLOCKS)) {
        attr.num_blocks = of.blocks().count;
        attr.min_block  = of.blocks().min_length;
        attr.max_block  = of.blocks().max_length;
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_DEPTH)) {
        attr.depth = of.depth();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_OVERLAP)) {
        attr.overlap = to_c(of.overlap());
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_HASH)) {
        attr.hash = of.hash();
    }
    if (asked(UCP_LAYOUT_ATTR_FIELD_WIRE_LENGTH)) {
        attr.wire_length = wire_length(of);
    }
}

ucs_status_t query(const layout& of, ucp_layout_attr_t& attr)
{
    const auto status = check_field_mask("ucp_layout_query", attr.field_mask, known_fields);
    if (status != UCS_OK) {
        return status;
    }
    if ((attr.field_mask & UCP_LAYOUT_ATTR_FIELD_BOUNDS) && attr.source >= of.num_sources()) {
        ucs_error("ucp_layout_query: source %u, the layout has %u", attr.source, of.num_sources());
        return UCS_ERR_INVALID_PARAM;
    }
    fill(of, attr);
    return UCS_OK;
}

ucs_status_t print(ucp_layout& of, FILE* stream, unsigned flags)
{
    std::string text;
    if (flags & UCP_LAYOUT_PRINT_TEXT) {
        text += to_text(*of.value) + '\n';
    }
    if (flags & UCP_LAYOUT_PRINT_NORMAL) {
        text += describe(*of.value);
    }
    if (flags & UCP_LAYOUT_PRINT_PLAN) {
        auto plan = of.plan();
        if (!plan) {
            return log_error("ucp_layout_print", plan.error());
        }
        text += (*plan)->describe();
    }
    if (std::fputs(text.c_str(), stream) < 0) {
        ucs_error("ucp_layout_print: writing failed: %m");
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_query(ucp_layout_h layout, ucp_layout_attr_t* attr)
{
    return guarded(__func__, [&] { return query(*layout->value, *attr); });
}

ucs_status_t ucp_layout_print(ucp_layout_h layout, FILE* stream, unsigned flags)
{
    return guarded(__func__, [&] { return print(*layout, stream, flags); });
}

ucs_status_t ucp_layout_walk(ucp_layout_h layout, size_t offset, size_t length, ucp_layout_walk_cb_t cb, void* arg)
{
    const std::uint64_t packed_length = layout->value->packed_length();
    if (offset > packed_length || length > packed_length - offset) {
        ucs_error("ucp_layout_walk: offset %zu and length %zu pass the packed length %lu", offset, length,
                  packed_length);
        return UCS_ERR_INVALID_PARAM;
    }
    return guarded(__func__, [&] {
        ucs_status_t status = UCS_OK;
        for_each_block(*layout->value, offset, length, [&](const placed_block& block) {
            status = cb(arg, block.source, block.offset, block.length);
            return status == UCS_OK;
        });
        return status;
    });
}
