#include "layout_parts.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ucxl::mpi
{

namespace
{

// ucp_layout_create logs an error where a limit is exceeded. A datatype beyond it is none, it is left to MPI.
constexpr auto max_distance = static_cast<MPI_Count>(UCP_LAYOUT_MAX_LENGTH) / 2;
constexpr MPI_Count too_far = std::numeric_limits<MPI_Count>::max() / 8;

std::unexpected<const char*> too_large()
{
    return std::unexpected("it exceeds a limit of layouts");
}

bool is_within_limits(const type_layout& made)
{
    return made.size <= max_distance && made.span <= max_distance && made.depth <= UCP_LAYOUT_MAX_DEPTH &&
           made.entries <= UCP_LAYOUT_MAX_ENTRIES && made.origin > -too_far && made.origin < too_far;
}

type_layout_result create(const ucp_layout_params_t& params, type_layout&& made)
{
    ucp_layout_h layout = nullptr;
    if (ucp_layout_create(&params, &layout) != UCS_OK) {
        return too_large();
    }
    made.layout = owned_layout(layout);
    return std::make_shared<type_layout>(std::move(made));
}

type_layout_ptr empty_layout()
{
    return std::make_shared<type_layout>();
}

type_layout_result block_of(MPI_Count origin, MPI_Count length)
{
    type_layout made{
        .layout = {}, .origin = origin, .span = length, .size = length, .extent = length, .is_block = true};
    if (!is_within_limits(made)) {
        return too_large();
    }
    ucp_layout_params_t params{};
    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT;
    params.kind       = UCP_LAYOUT_KIND_CONTIG;
    params.element    = {.length = static_cast<std::size_t>(length), .layout = nullptr};
    return create(params, std::move(made));
}

} // namespace

MPI_Count product(MPI_Count a, MPI_Count b)
{
    MPI_Count result = 0;
    if (__builtin_mul_overflow(a, b, &result) || result > too_far || result < -too_far) {
        return (a < 0) == (b < 0) ? too_far : -too_far;
    }
    return result;
}

MPI_Count sum(MPI_Count a, MPI_Count b)
{
    MPI_Count result = 0;
    if (__builtin_add_overflow(a, b, &result)) {
        return a < 0 ? -too_far : too_far;
    }
    return std::clamp(result, -too_far, too_far);
}

type_layout_result strided(const type_layout_ptr& child, MPI_Count count, MPI_Count stride)
{
    if (count <= 0 || child->size == 0) {
        return empty_layout();
    }
    const MPI_Count distance = product(count - 1, stride);
    type_layout made{.layout   = {},
                     .origin   = child->origin + std::min<MPI_Count>(distance, 0),
                     .span     = child->span + (distance < 0 ? -distance : distance),
                     .size     = product(count, child->size),
                     .is_block = child->is_block && (count == 1 || stride == child->size),
                     .depth    = child->depth + (count > 1 ? 1 : 0),
                     .entries  = child->entries + 1};
    if (made.is_block) {
        return block_of(made.origin, made.size);
    }
    if (!is_within_limits(made)) {
        return too_large();
    }
    const ucp_layout_dim_t dim{.count = static_cast<std::size_t>(count), .stride = stride};
    ucp_layout_params_t params{};
    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_DIMS;
    params.kind       = UCP_LAYOUT_KIND_STRIDED;
    params.element    = {.length = static_cast<std::size_t>(child->size),
                         .layout = child->is_block ? nullptr : child->layout.get()};
    params.dims       = &dim;
    params.num_dims   = 1;
    if (stride >= 0) {
        return create(params, std::move(made));
    }
    // The first element in packed order is the last one in memory.
    const auto backwards = create(params, {});
    if (!backwards) {
        return backwards;
    }
    const ucp_layout_iov_t whole{
        .source = 0, .offset = -distance, .element = {.length = 0, .layout = (*backwards)->layout.get()}};
    ucp_layout_params_t placed{};
    placed.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_IOV;
    placed.kind       = UCP_LAYOUT_KIND_IOV;
    placed.iov        = &whole;
    placed.num_iov    = 1;
    return create(placed, std::move(made));
}

void layout_parts::add(MPI_Count offset, const type_layout_ptr& layout)
{
    if (layout->size == 0) {
        return;
    }
    const MPI_Count start = sum(offset, layout->origin);
    if (layout->is_block) {
        add_block(start, layout->size);
    } else {
        _parts.push_back({start, 0, layout});
    }
}

void layout_parts::add_block(MPI_Count offset, MPI_Count length)
{
    if (!_parts.empty() && _parts.back().layout == nullptr && _parts.back().end() == offset) {
        _parts.back().length += length;
    } else if (length > 0) {
        _parts.push_back({offset, length, nullptr});
    }
}

type_layout_result layout_parts::together() const
{
    if (_parts.empty()) {
        return empty_layout();
    }
    if (_parts.size() == 1 && _parts[0].layout == nullptr) {
        return block_of(_parts[0].offset, _parts[0].length);
    }
    type_layout made;
    made.origin   = std::ranges::min(_parts, {}, &part::offset).offset;
    MPI_Count end = made.origin;
    for (const part& each : _parts) {
        if (each.offset > too_far || each.offset < -too_far || each.size() > max_distance) {
            return too_large();
        }
        end = std::max(end, each.end());
        made.size += each.size();
        made.depth = std::max(made.depth, 1 + (each.layout == nullptr ? 0 : each.layout->depth));
        made.entries += 1 + (each.layout == nullptr ? 0 : each.layout->entries);
        if (made.size > max_distance) {
            return too_large();
        }
    }
    made.span = end - made.origin;
    if (!is_within_limits(made)) {
        return too_large();
    }
    std::vector<ucp_layout_iov_t> list;
    list.reserve(_parts.size());
    for (const part& each : _parts) {
        list.push_back({.source  = 0,
                        .offset  = each.offset - made.origin,
                        .element = {.length = static_cast<std::size_t>(each.length),
                                    .layout = each.layout == nullptr ? nullptr : each.layout->layout.get()}});
    }
    ucp_layout_params_t params{};
    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_IOV;
    params.kind       = UCP_LAYOUT_KIND_IOV;
    params.iov        = list.data();
    params.num_iov    = list.size();
    return create(params, std::move(made));
}

} // namespace ucxl::mpi
