// The class Layout of Python.
#include "layout_object.h"

#include <cstdio>
#include <nanobind/stl/string.h>

namespace ucxl::python
{

namespace
{

std::string printed(const layout_object& layout, unsigned flags)
{
    struct stream {
        char* text     = nullptr;
        size_t length  = 0;
        std::FILE* out = open_memstream(&text, &length);

        ~stream()
        {
            if (out != nullptr) {
                std::fclose(out);
            }
            std::free(text);
        }
    } to;
    if (to.out == nullptr) {
        raise(PyExc_MemoryError, "Layout: no memory for its text");
    }
    checked("Layout", [&] { return ucp_layout_print(layout.value->handle().get(), to.out, flags); });
    std::fflush(to.out);
    std::string text(to.text, to.length);
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    return text;
}

std::string text_of(const layout_object& layout)
{
    return printed(layout, UCP_LAYOUT_PRINT_TEXT);
}

std::string description_of(const layout_object& layout)
{
    return printed(layout, UCP_LAYOUT_PRINT_NORMAL | UCP_LAYOUT_PRINT_PLAN);
}

std::string representation_of(const layout_object& layout)
{
    return std::format("<Layout {}: {} bytes>", text_of(layout), layout.value->packed_length());
}

nb::bytes serialized(const layout_object& layout)
{
    std::vector<std::byte> bytes(layout.value->query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH).serialized_length);
    const auto length = checked("Layout", [&] { return layout.value->handle().serialize(bytes); });
    return nb::bytes(bytes.data(), length);
}

shared_layout_ptr deserialized(const nb::bytes& bytes)
{
    return make_shared_layout("data", [&] {
        return ucx_layout::layout::deserialize({static_cast<const std::byte*>(bytes.data()), bytes.size()});
    });
}

nb::object overlaps(const layout_object& layout)
{
    const auto overlap = layout.value->overlap();
    return overlap == UCP_LAYOUT_OVERLAP_MAYBE ? nb::none() : nb::object(nb::bool_(overlap == UCP_LAYOUT_OVERLAP_SOME));
}

nb::list blocks_of(const layout_object& layout, nb::handle limit)
{
    struct visit {
        nb::list found;
        std::int64_t left;
        bool is_failed;
    } visited{nb::list(), limit.is_none() ? INT64_MAX : integer_of(limit, "limit"), false};
    const auto note = [](void* arg, std::uint32_t source, std::ptrdiff_t offset, std::size_t length) noexcept {
        auto& to = *static_cast<visit*>(arg);
        if (to.left-- <= 0) {
            return UCS_ERR_CANCELED;
        }
        try {
            to.found.append(nb::make_tuple(source, offset, length));
        } catch (nb::python_error& failure) {
            failure.discard_as_unraisable("Layout.blocks");
            to.is_failed = true;
        } catch (const std::exception&) {
            to.is_failed = true;
        }
        return to.is_failed ? UCS_ERR_NO_MEMORY : UCS_OK;
    };
    const error_text text;
    ucp_layout_walk(layout.value->handle().get(), 0, layout.value->packed_length(), note, &visited);
    if (visited.is_failed) {
        raise(PyExc_MemoryError, "Layout.blocks: no memory for the list");
    }
    return visited.found;
}

nb::list bounds_of(const layout_object& layout)
{
    nb::list found;
    for (const auto& each : layout.value->bounds()) {
        found.append(nb::make_tuple(each.lb, each.ub));
    }
    return found;
}

} // namespace

void bind_layout(nb::module_& module)
{
    nb::class_<layout_object> layout_class(
        module, "Layout", nb::is_final(),
        R"doc(Where bytes are, without addresses: blocks in a fixed order, the packed order.

Immutable; any thread may use it. Made by layout_of(), strided(), blocks(), interleaved(), concatenate(), contiguous(),
resized() and parse(). Layouts of equal content are equal, have the same hash in a process, and share their compiled
plan. All lengths, offsets and strides are bytes. Can be pickled.)doc");
    layout_class.def("__str__", &text_of)
        .def("__repr__", &representation_of)
        .def(
            "__eq__", [](const layout_object& own, const layout_object& other) { return own == other; },
            nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__",
             [](const layout_object& layout) {
                 return static_cast<Py_hash_t>(layout.value->query(UCP_LAYOUT_ATTR_FIELD_HASH).hash >> 1);
             })
        .def("__getstate__", &serialized)
        .def("__setstate__",
             [](layout_object& layout, const nb::bytes& bytes) {
                 auto read = deserialized(bytes);
                 new (&layout) layout_object{std::move(read)};
             })
        .def("to_bytes", &serialized, "The layout as bytes, to store or to send. Later releases read them, too.")
        .def_static(
            "from_bytes", [](const nb::bytes& data) { return layout_object{deserialized(data)}; }, nb::arg("data"),
            "Reads what to_bytes() wrote. Any bytes are safe: others raise ValueError.")
        .def("describe", &description_of, "The normal form and the copy kernels, as text for people.")
        .def("blocks", &blocks_of, nb::arg("limit") = nb::none(),
             nb::sig("def blocks(self, limit: int | None = None) -> list[tuple[int, int, int]]"),
             "The first `limit` contiguous blocks in packed order: (source, offset, length). Default: all of them.")
        .def_prop_ro(
            "packed_length", [](const layout_object& layout) { return layout.value->packed_length(); },
            "Bytes described: of the gathered array, and of a window.")
        .def_prop_ro(
            "num_sources", [](const layout_object& layout) { return layout.value->num_sources(); },
            "Number of arrays that it describes bytes of, at least 1.")
        .def_prop_ro(
            "extent",
            [](const layout_object& layout) { return layout.value->query(UCP_LAYOUT_ATTR_FIELD_EXTENT).extent; },
            "Bytes between the bounds, the largest one of all sources.")
        .def_prop_ro(
            "num_blocks",
            [](const layout_object& layout) { return layout.value->query(UCP_LAYOUT_ATTR_FIELD_BLOCKS).num_blocks; },
            "Contiguous blocks; neighbours that touch count as one.")
        .def_prop_ro(
            "depth", [](const layout_object& layout) { return layout.value->query(UCP_LAYOUT_ATTR_FIELD_DEPTH).depth; },
            "Loops nested in the normal form.")
        .def_prop_ro("bounds", &bounds_of, nb::sig("def bounds(self) -> list[tuple[int, int]]"),
                     "For each source the first byte and the one behind the last byte, from its first element.")
        .def_prop_ro("overlaps", &overlaps, nb::sig("def overlaps(self) -> bool | None"),
                     "Whether some byte is described more than once; None if finding out would take too long. Such a "
                     "layout can be read and sent, but nothing is written or received through it.");
    // The picture is drawn in Python.
    layout_class.def(
        "svg", [](nb::handle self) { return nb::module_::import_("ucx_layout._picture").attr("svg")(self); },
        nb::sig("def svg(self) -> str"),
        "A picture as SVG: memory above, a row for each source; the window below. Shows the first 24 "
        "blocks, and says so.");
    layout_class.def(
        "_repr_html_", [](nb::handle self) { return self.attr("svg")(); }, nb::sig("def _repr_html_(self) -> str"));
}

} // namespace ucxl::python
