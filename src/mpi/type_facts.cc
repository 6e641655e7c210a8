#include "type_facts.h"

#include "basic_type.h"
#include "layout_parts.h"
#include "library.h"
#include "ucp_datatypes.h"

#include <cstdlib>
#include <limits>

namespace ucxl::mpi
{

namespace
{

bool query(counted_layout& counted)
{
    ucp_layout_attr_t attr{};
    attr.field_mask =
        UCP_LAYOUT_ATTR_FIELD_BLOCKS | UCP_LAYOUT_ATTR_FIELD_OVERLAP | UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH;
    if (ucp_layout_query(counted.layout->layout.get(), &attr) != UCS_OK) {
        return false;
    }
    counted.moved     = {.length      = static_cast<std::size_t>(counted.layout->size),
                         .num_blocks  = attr.num_blocks,
                         .span        = static_cast<std::size_t>(counted.layout->span),
                         .list_length = attr.serialized_length,
                         .is_mixed    = attr.min_block_length != attr.max_block_length};
    counted.is_unique = attr.overlap == UCP_LAYOUT_OVERLAP_NONE;
    return true;
}

// Bytes at absolute addresses are farther from the buffer than an offset of a layout may be.
bool has_ucp_datatype(const type_layout_ptr& layout)
{
    constexpr MPI_Count max_offset = MPI_Count{1} << 45;
    return layout != nullptr && layout->size > 0 && layout->extent >= 0 && std::abs(layout->origin) < max_offset;
}

// The layout at its place from the buffer, with the extent of the datatype. Null without memory.
layout_ptr with_bounds(const type_layout& layout)
{
    const ucp_layout_iov_t only{.source  = 0,
                                .offset  = static_cast<ptrdiff_t>(layout.origin),
                                .element = {.length = 0, .layout = layout.layout.get()}};
    ucp_layout_params_t params{};
    params.field_mask   = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_IOV | UCP_LAYOUT_PARAM_FIELD_EXTENT;
    params.kind         = UCP_LAYOUT_KIND_IOV;
    params.iov          = &only;
    params.num_iov      = 1;
    params.lb           = static_cast<ptrdiff_t>(layout.origin);
    params.extent       = static_cast<std::size_t>(layout.extent);
    ucp_layout_h handle = nullptr;
    return ucp_layout_create(&params, &handle) == UCS_OK ? owned_layout(handle) : nullptr;
}

} // namespace

type_facts::~type_facts()
{
    ucp_layout_datatype_destroy(_layout_datatype);
    MPI_Datatype packed = _packed.load();
    if (packed != MPI_DATATYPE_NULL && library::is_active()) {
        PMPI_Type_free(&packed);
    }
}

bool type_facts::learn()
{
    if (_is_learned.load(std::memory_order_relaxed)) {
        return false;
    }
    const auto made = type_layout_of(_type);
    if (!made) {
        _why_no_layout = made.error();
    } else if ((*made)->size == 0) {
        _why_no_layout = "empty";
    } else if ((*made)->size > std::numeric_limits<int>::max()) {
        _why_no_layout = "an element is longer than 2 GB";
    } else {
        MPI_Datatype packed = MPI_DATATYPE_NULL;
        if (PMPI_Type_contiguous(static_cast<int>((*made)->size), MPI_BYTE, &packed) == MPI_SUCCESS &&
            PMPI_Type_commit(&packed) == MPI_SUCCESS) {
            _packed.store(packed, std::memory_order_release);
            _layout = *made;
        }
    }
    if (ucp_datatypes::are_used() && has_ucp_datatype(_layout)) {
        const traffic moved = counted(1).moved;
        _is_fast_in_engine  = why_not_worth(moved, means::layout) != nullptr;
        if (!_is_fast_in_engine) {
            make_layout_datatype();
        }
    }
    _is_learned.store(true, std::memory_order_release);
    return true;
}

void type_facts::make_layout_datatype()
{
    const layout_ptr element = with_bounds(*_layout);
    if (element == nullptr || ucp_layout_datatype_create(element.get(), &_layout_datatype) != UCS_OK) {
        return;
    }
    ucp_layout_datatype_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_DATATYPE_ATTR_FIELD_CONTEXT;
    ucp_layout_datatype_query(_layout_datatype, &attr);
    _layout_context = attr.context;
}

counted_layout type_facts::counted(MPI_Count count) const
{
    counted_layout made;
    if (_layout == nullptr) {
        made.why_not = _why_no_layout;
        return made;
    }
    const auto layout = repeated(_layout, count);
    if (!layout) {
        made.why_not = layout.error();
        return made;
    }
    made.layout = *layout;
    if (made.layout->is_block) { // of which not every attribute is needed
        made.moved     = {.length = static_cast<std::size_t>(made.layout->size), .num_blocks = 1};
        made.is_unique = true;
    } else if (!query(made)) {
        made.layout = nullptr;
    }
    made.why_not = why_not_worth(made.moved, means::window);
    return made;
}

MPI_Datatype type_facts::basic_type()
{
    if (!_basic) {
        _basic = basic_type_of(_type);
    }
    return *_basic;
}

} // namespace ucxl::mpi
