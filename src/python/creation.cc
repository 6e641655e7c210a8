// The functions of Python that make layouts.
#include "layout_object.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <span>

namespace ucxl::python
{

namespace
{

using dims     = std::vector<ucx_layout::layout::dim>;
using elements = std::vector<shared_layout_ptr>;

dims dims_of(nb::handle counts, nb::handle strides)
{
    const auto count  = integers_of(counts, "count", true);
    const auto stride = integers_of(strides, "stride", true);
    if (count.size() != stride.size()) {
        raise(PyExc_ValueError, "stride: {} strides for {} counts", stride.size(), count.size());
    }
    dims made;
    for (std::size_t i = 0; i < count.size(); ++i) {
        if (count[i] < 0) {
            raise(PyExc_ValueError, "count: {} is negative", count[i]);
        }
        made.push_back({.count = static_cast<std::size_t>(count[i]), .stride = stride[i]});
    }
    return made;
}

std::uint32_t source_of(nb::handle object)
{
    const std::int64_t source = integer_of(object, "source");
    if (source < 0 || source >= UCP_LAYOUT_MAX_SOURCES) {
        raise(PyExc_ValueError, "source: {} is not one of 0 to {}", source, UCP_LAYOUT_MAX_SOURCES - 1);
    }
    return static_cast<std::uint32_t>(source);
}

nb::tuple tuple_of(nb::handle object, std::size_t size, const char* name)
{
    if (!nb::isinstance<nb::tuple>(object) || nb::len(object) != size) {
        raise(PyExc_TypeError, "{}: '{}' in the place of a {}", name, type_name_of(object),
              size == 3 ? "Part" : "Item");
    }
    return nb::borrow<nb::tuple>(object);
}

layout_object layout_of(nb::handle source)
{
    return {layout_of_array(array(source, "array"))};
}

layout_object contiguous(nb::handle element, nb::handle count)
{
    elements keep;
    const auto item   = element_of(element, "element", keep);
    const auto number = integer_of(count, "count");
    if (number < 0) {
        raise(PyExc_ValueError, "count: {} is negative", number);
    }
    return {make_shared_layout(
        "contiguous", [&] { return ucx_layout::layout::create_contig(static_cast<std::size_t>(number), item); })};
}

layout_object strided(nb::handle element, nb::handle count, nb::handle stride)
{
    elements keep;
    const auto item = element_of(element, "element", keep);
    const auto made = dims_of(count, stride);
    return {make_shared_layout("strided", [&] { return ucx_layout::layout::create_strided(item, made); })};
}

// The parts of a block table. The memory is kept for the next table, up to some MB: making a layout costs less than
// what the system takes for new pages of that size. Needs the GIL.
class table_parts
{
public:
    table_parts() { std::swap(parts, kept()); }
    ~table_parts()
    {
        if (parts.capacity() <= max_kept) {
            std::swap(parts, kept());
        }
    }
    table_parts(const table_parts&)            = delete;
    table_parts& operator=(const table_parts&) = delete;

    std::vector<ucx_layout::layout::iov> parts;

private:
    static constexpr std::size_t max_kept = 1U << 17;

    // Never destroyed: threads may end after the program.
    static std::vector<ucx_layout::layout::iov>& kept()
    {
        static auto& only = *new std::vector<ucx_layout::layout::iov>;
        return only;
    }
};

// The offsets of the parts are set; they become bytes.
void scale(std::span<ucx_layout::layout::iov> parts, std::int64_t unit)
{
    for (std::size_t i = 0; i < parts.size(); ++i) {
        std::int64_t offset = 0;
        if (__builtin_mul_overflow(parts[i].offset, unit, &offset)) {
            raise(PyExc_ValueError, "offsets: {} at position {}, of {} bytes each, is too far away", parts[i].offset, i,
                  unit);
        }
        parts[i].offset = offset;
    }
}

void set_lengths(std::span<ucx_layout::layout::iov> parts, nb::handle length)
{
    const auto lengths = integers_of(length, "length", true);
    const bool is_one  = lengths.size() == 1 && parts.size() != 1;
    if (!is_one && lengths.size() != parts.size()) {
        raise(PyExc_ValueError, "length: {} lengths for {} offsets", lengths.size(), parts.size());
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::int64_t bytes = lengths[is_one ? 0 : i];
        if (bytes < 0) {
            raise(PyExc_ValueError, "length: {} at position {} is negative", bytes, i);
        }
        parts[i].element = {.length = static_cast<std::size_t>(bytes), .layout = nullptr};
    }
}

layout_object blocks(nb::handle offsets, nb::handle length, nb::handle unit)
{
    table_parts table;
    auto& parts = table.parts;
    read_integers(offsets, "offsets", false, [&](std::size_t count) {
        static_assert(sizeof(parts[0].offset) == sizeof(std::int64_t));
        parts.clear();
        parts.resize(count);
        return integer_places{reinterpret_cast<std::byte*>(parts.data()) + offsetof(ucx_layout::layout::iov, offset),
                              sizeof(parts[0])};
    });
    scale(parts, integer_of(unit, "unit"));
    elements keep;
    const bool is_list = !nb::isinstance<layout_object>(length) &&
                         (is_array(length) || nb::isinstance<nb::sequence>(length)) && !PyLong_Check(length.ptr());
    if (is_list) {
        set_lengths(parts, length);
    } else {
        const auto one = element_of(length, "length", keep);
        std::ranges::for_each(parts, [&](auto& part) { part.element = one; });
    }
    return {make_shared_layout("blocks", [&] { return ucx_layout::layout::concatenate(parts); })};
}

layout_object concatenate(nb::handle parts)
{
    elements keep;
    std::vector<ucx_layout::layout::iov> made;
    for (const nb::handle each : nb::iter(parts)) {
        const auto part = tuple_of(each, 3, "parts");
        made.push_back({.source  = source_of(part[2]),
                        .offset  = integer_of(part[1], "offset"),
                        .element = element_of(part[0], "element", keep)});
    }
    return {make_shared_layout("concatenate", [&] { return ucx_layout::layout::concatenate(made); })};
}

layout_object interleaved(nb::handle items)
{
    elements keep;
    std::list<dims> places; // do not move
    std::vector<ucx_layout::layout::interleaved> made;
    for (const nb::handle each : nb::iter(items)) {
        const auto item   = tuple_of(each, 6, "items");
        const auto repeat = integer_of(item[5], "repeat");
        if (repeat < 1) {
            raise(PyExc_ValueError, "repeat: {}, at least 1 is needed", repeat);
        }
        places.push_back(dims_of(item[1], item[2]));
        made.push_back({.source   = source_of(item[3]),
                        .offset   = integer_of(item[4], "offset"),
                        .element  = element_of(item[0], "element", keep),
                        .repeat   = static_cast<std::size_t>(repeat),
                        .dims     = places.back().data(),
                        .num_dims = static_cast<unsigned>(places.back().size())});
    }
    return {make_shared_layout("interleaved", [&] { return ucx_layout::layout::interleave(made); })};
}

layout_object resized(const layout_object& element, nb::handle lb, nb::handle extent)
{
    const auto bytes = integer_of(extent, "extent");
    if (bytes < 0) {
        raise(PyExc_ValueError, "extent: {} is negative", bytes);
    }
    ucp_layout_params_t params{};
    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_EXTENT;
    params.kind       = UCP_LAYOUT_KIND_CONTIG;
    params.element    = element.value->handle().as_element();
    params.lb         = integer_of(lb, "lb");
    params.extent     = static_cast<std::size_t>(bytes);
    return {make_shared_layout("resized", [&] { return ucx_layout::layout::create(params); })};
}

layout_object parse(const char* text)
{
    return {make_shared_layout("text", [&] { return ucx_layout::layout::parse(text); })};
}

} // namespace

void bind_creation(nb::module_& module)
{
    module.def("layout_of", &layout_of, nb::arg("array"), nb::sig("def layout_of(array: Array) -> Layout"),
               R"doc(The elements of an array in C order, seen from its first element.

Any strides are taken: those of slices, transposed and reversed arrays, 0 of broadcast ones, and arrays without
dimensions. The layout has no address, so it fits every array of the same shape and strides, and does not keep this one.

Raises TypeError if the argument is no array or its elements are Python objects, BufferError if it is in memory that the
CPU cannot read (a GPU), ValueError if more than 16 dimensions are left after merging those that are one.)doc");
    module.def("contiguous", &contiguous, nb::arg("element"), nb::arg("count") = 1,
               nb::sig("def contiguous(element: int | Layout, count: int = 1) -> Layout"),
               R"doc(`count` elements in sequence, each at the extent of the one before.

An element is a number of bytes, or a Layout. Raises ValueError if a limit is exceeded (2^46 bytes).)doc");
    module.def("strided", &strided, nb::arg("element"), nb::arg("count"), nb::arg("stride"),
               nb::sig("def strided(element: int | Layout, count: Integers, stride: Integers) -> Layout"),
               R"doc(An element repeated in one or several dimensions.

`element` is a number of bytes, or a Layout. `count` is the number of elements and `stride` the bytes from one to the
next, which may be negative or 0; for several dimensions both are sequences of the same length, the outermost
dimension first: strided(8, [3, 4], [384, 64]).)doc");
    module.def("blocks", &blocks, nb::arg("offsets"), nb::arg("length"), nb::kw_only(), nb::arg("unit") = 1,
               nb::sig("def blocks(offsets: IntegerArray, length: Integers | Layout, *, unit: int = 1) -> Layout"),
               R"doc(Blocks at any offsets, in the order of `offsets`: a block table.

`offsets` is an array of integers of any width, or a list; an array of several dimensions is read in C order. Block i
begins at byte offsets[i] * `unit`, computed in 64 bits: a table of block numbers is blocks(table, n, unit=n).
`length` is the bytes of each block, an array with the length of each one, or a Layout that is the element.

Raises ValueError for offsets beyond 2^46 bytes. Whether blocks are inside of an array shows when the layout is
used.)doc");
    module.def("concatenate", &concatenate, nb::arg("parts"),
               nb::sig("def concatenate(parts: Iterable[Part]) -> Layout"),
               "Parts at any offsets of any sources, in sequence. See Part.");
    module.def("interleaved", &interleaved, nb::arg("items"),
               nb::sig("def interleaved(items: Iterable[Item]) -> Layout"),
               R"doc(Records out of arrays: cycles that take the next `repeat` elements of each item in turn. See Item.

Cycles skip an item that has run out.)doc");
    module.def("resized", &resized, nb::arg("layout"), nb::arg("lb"), nb::arg("extent"),
               nb::sig("def resized(layout: Layout, lb: int, extent: int) -> Layout"),
               "The layout with other bounds, in bytes: elements in sequence are `extent` bytes apart.");
    module.def("parse", &parse, nb::arg("text"), nb::sig("def parse(text: str) -> Layout"),
               R"doc(A layout from text: parse("strided(4096,64,128)"). ucx_layout_info(1) has the grammar.

Raises ValueError, which names the column.)doc");
}

} // namespace ucxl::python
