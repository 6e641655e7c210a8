#include "shared_layout.h"

#include <algorithm>
#include <array>

namespace ucxl::python
{

namespace
{

// The shape of an array without dimensions of one element, and with dimensions merged that are one.
struct shape_key {
    std::int64_t element_size = 0;
    int num_dims              = 0;
    std::array<std::int64_t, UCP_LAYOUT_MAX_DEPTH> counts{}, strides{};

    bool operator==(const shape_key&) const = default;

    std::size_t hash() const
    {
        std::size_t value = static_cast<std::size_t>(element_size);
        for (int i = 0; i < num_dims; ++i) {
            const auto at = static_cast<std::size_t>(i);
            value         = (value ^ static_cast<std::size_t>(counts[at])) * 0x9e3779b97f4a7c15;
            value         = (value ^ static_cast<std::size_t>(strides[at]) ^ (value >> 32)) * 0x9e3779b97f4a7c15;
        }
        return value ^ (value >> 32);
    }
};

// From the last dimension on, which is written first. Strides of an array without elements may be any numbers.
shape_key key_of(const array& source)
{
    shape_key key{.element_size = source.type().size};
    if (std::ranges::contains(source.shape(), 0)) {
        key.num_dims = 1;
        return key;
    }
    for (std::size_t i = source.shape().size(); i-- > 0;) {
        const auto count = source.shape()[i], stride = source.strides()[i];
        if (count == 1) {
            continue;
        }
        if (key.num_dims == 0 && stride == key.element_size) {
            key.element_size *= count; // a block of several elements
            continue;
        }
        const auto before = static_cast<std::size_t>(key.num_dims) - 1;
        if (key.num_dims > 0 && stride == key.strides[before] * key.counts[before]) {
            key.counts[before] *= count;
            continue;
        }
        if (key.num_dims == UCP_LAYOUT_MAX_DEPTH) {
            raise(PyExc_ValueError, "{}: more than {} dimensions that cannot be merged", source.name(),
                  static_cast<int>(UCP_LAYOUT_MAX_DEPTH));
        }
        const auto at   = static_cast<std::size_t>(key.num_dims++);
        key.counts[at]  = count;
        key.strides[at] = stride;
    }
    return key;
}

shared_layout_ptr make(const shape_key& key, const char* name)
{
    std::array<ucx_layout::layout::dim, UCP_LAYOUT_MAX_DEPTH> dims{};
    const auto num_dims = static_cast<std::size_t>(key.num_dims);
    for (std::size_t i = 0; i < num_dims; ++i) {
        dims[num_dims - 1 - i] = {.count = static_cast<std::size_t>(key.counts[i]), .stride = key.strides[i]};
    }
    return make_shared_layout(name, [&] {
        return ucx_layout::layout::create_strided(
            {.length = static_cast<std::size_t>(key.element_size), .layout = nullptr},
            std::span(dims.data(), num_dims));
    });
}

struct known_shape {
    shape_key key;
    shared_layout_ptr layout;
};

// A shape has one place, and the last one that needed it has it. Never destroyed: threads may end after the program.
constexpr std::size_t num_places                  = 256;
std::array<known_shape, num_places>& known_shapes = *new std::array<known_shape, num_places>;

} // namespace

shared_layout::shared_layout(ucx_layout::layout&& handle) : _handle(std::move(handle))
{
    _attributes = checked("layout", [&] {
        return _handle.query(UCP_LAYOUT_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES);
    });
    _bounds.reserve(_attributes.num_sources);
    for (std::uint32_t source = 0; source < _attributes.num_sources; ++source) {
        const auto bounds = checked("layout", [&] { return _handle.query_bounds(source); });
        _bounds.push_back({bounds.true_lb, bounds.true_ub});
    }
}

ucp_layout_attr_t shared_layout::query(std::uint64_t fields) const
{
    return checked("Layout", [&] { return _handle.query(fields); });
}

ucp_layout_overlap_t shared_layout::overlap() const
{
    const auto* const known = _overlap.get([&] {
        return _handle.query(UCP_LAYOUT_ATTR_FIELD_OVERLAP).transform([](const auto& found) { return found.overlap; });
    });
    return known != nullptr ? *known : UCP_LAYOUT_OVERLAP_MAYBE;
}

const ucx_layout::plan* shared_layout::plan() const
{
    return _plan.get([&] {
        const error_text text; // who asked raises the error
        return ucx_layout::plan::create(_handle);
    });
}

shared_layout_ptr layout_of_array(const array& source)
{
    const shape_key key = key_of(source);
    known_shape& place  = known_shapes[key.hash() % num_places];
    if (place.layout == nullptr || !(place.key == key)) {
        place = {key, make(key, source.name())};
    }
    return place.layout;
}

} // namespace ucxl::python
