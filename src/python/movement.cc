#include "movement.h"

#include "gil.h"
#include "layout_object.h"

#include <cstring>
#include <memory>
#include <optional>

namespace ucxl::python
{

namespace
{

// Shorter copies take less than giving the GIL away and taking it again may.
constexpr std::size_t min_length_without_gil = 32 * 1024;

// Calls move(), which returns a status, without the GIL if it takes long.
template <typename Move>
void run(std::size_t length, Move&& move)
{
    if (length == 0) {
        return;
    }
    checked("gather, scatter or copy", [&] {
        std::optional<without_gil> released;
        if (length >= min_length_without_gil) {
            released.emplace();
        }
        return move();
    });
}

std::span<std::byte> bytes_of(std::byte* data, std::size_t length)
{
    return {data, length};
}

// Bytes that were not written yet.
std::unique_ptr<std::byte[]> temporary(std::size_t length)
{
    return std::make_unique_for_overwrite<std::byte[]>(length);
}

void check_length(const operand& described, const array& packed)
{
    const auto length = static_cast<std::int64_t>(described.length());
    if (packed.num_bytes() != length) {
        raise(PyExc_ValueError, "{}: {} bytes, {} has {}", packed.name(), packed.num_bytes(), described.name(), length);
    }
}

void check_type(const array& one, const array& other)
{
    if (!one.type().fits(other.type())) {
        raise(PyExc_TypeError, "{}: {}, {} has {}", one.name(), one.type().name(), other.name(), other.type().name());
    }
}

nb::object numpy_empty(nb::handle shape, nb::handle dtype)
{
    // Set with the GIL, which an import gives up. Who had the guard of C++ meanwhile would be waited for with the GIL.
    static PyObject* found = nullptr;
    if (found == nullptr) {
        nb::object imported = nb::module_::import_("numpy").attr("empty");
        if (found == nullptr) {
            found = imported.release().ptr();
        }
    }
    return nb::handle(found)(shape, dtype);
}

// Of the type of the source's elements, and of its shape unless a layout says what is gathered.
nb::object new_array_for(const operand& source)
{
    const nb::handle object = source.front().object();
    const auto size         = source.front().type().size;
    const auto length       = static_cast<std::int64_t>(source.length());
    if (source.arrays().size() > 1) {
        return numpy_empty(nb::int_(length), nb::str("u1"));
    }
    if (source.has_layout() && (size == 0 || length % size != 0)) {
        raise(PyExc_ValueError, "out: the layout has {} bytes, which is no whole number of {}; pass an array for them",
              length, source.front().type().name());
    }
    const nb::object shape = source.has_layout() ? nb::object(nb::make_tuple(length / size)) : nb::tuple();
    if (nb::hasattr(object, "new_empty")) { // torch
        return object.attr("new_empty")(source.has_layout() ? shape : nb::object(object.attr("shape")));
    }
    if (nb::hasattr(object, "dtype") && nb::hasattr(object, "shape")) {
        return numpy_empty(source.has_layout() ? shape : nb::object(object.attr("shape")),
                           nb::object(object.attr("dtype")));
    }
    return numpy_empty(nb::int_(length), nb::str("u1"));
}

void gather_into(const operand& source, std::byte* into)
{
    const std::size_t length = source.length();
    run(length, [&] {
        if (!source.may_overlap(into, length)) {
            return source.layout().handle().gather(source.const_bases(), 0, bytes_of(into, length));
        }
        const auto between = temporary(length);
        const auto status  = source.layout().handle().gather(source.const_bases(), 0, bytes_of(between.get(), length));
        std::memcpy(into, between.get(), length);
        return status;
    });
}

void scatter_from(const std::byte* packed, const operand& target)
{
    const std::size_t length = target.length();
    run(length, [&] {
        if (!target.may_overlap(packed, length)) {
            return target.layout().handle().scatter(target.bases(), 0, {packed, length});
        }
        const auto between = temporary(length);
        std::memcpy(between.get(), packed, length);
        return target.layout().handle().scatter(target.bases(), 0, {between.get(), length});
    });
}

void copy_between(const operand& source, const operand& target)
{
    const std::size_t length = target.length();
    run(length, [&] {
        if (source.may_overlap(target)) {
            const auto between = temporary(length);
            const auto status =
                source.layout().handle().gather(source.const_bases(), 0, bytes_of(between.get(), length));
            return status != UCS_OK ? status
                                    : target.layout().handle().scatter(target.bases(), 0, {between.get(), length});
        }
        const auto *from = source.layout().plan(), *to = target.layout().plan();
        return from == nullptr || to == nullptr ? UCS_ERR_NO_MEMORY
                                                : to->copy(target.bases(), 0, *from, source.const_bases(), 0, length);
    });
}

nb::object gather(nb::handle source, nb::object out, const layout_object* layout)
{
    const operand from(source, "source", layout_or_null(layout));
    if (out.is_none()) {
        out = new_array_for(from);
    }
    const array into(out, "out");
    into.require_writable();
    into.require_contiguous();
    check_length(from, into);
    if (!from.has_layout()) {
        check_type(into, from.front());
    }
    gather_into(from, into.data());
    return out;
}

void scatter(nb::handle packed, nb::handle target, const layout_object* layout)
{
    const operand to(target, "target", layout_or_null(layout));
    const array from(packed, "packed");
    from.require_contiguous();
    to.require_target();
    check_length(to, from);
    if (!to.has_layout()) {
        check_type(from, to.front());
    }
    scatter_from(from.data(), to);
}

void copy(nb::handle source, nb::handle target, const layout_object* source_layout, const layout_object* target_layout)
{
    const operand from(source, "source", layout_or_null(source_layout));
    const operand to(target, "target", layout_or_null(target_layout));
    to.require_target();
    if (from.length() != to.length()) {
        raise(PyExc_ValueError, "target: {} bytes, source has {}", to.length(), from.length());
    }
    if (!from.has_layout() && !to.has_layout()) {
        check_type(to.front(), from.front());
    }
    copy_between(from, to);
}

} // namespace

void bind_movement(nb::module_& module)
{
    module.def("gather", &gather, nb::arg("source"), nb::arg("out") = nb::none(), nb::kw_only(),
               nb::arg("layout") = nb::none(),
               nb::sig("def gather(source: Array | Sequence[Array], out: Array | None = None, *, layout: Layout | None "
                       "= None) -> Any"),
               R"doc(Copies the elements of an array of any strides into a contiguous one, and returns that.

`out` has to be contiguous, writable, of the same number of bytes and of the same type of elements, or of bytes; its
shape does not matter. Default: a new array of NumPy with the shape of `source`, or a tensor if `source` is one of
torch.

With `layout` it gathers what the layout describes, from the first element of `source` on; a layout of several sources
takes a list of arrays. Every byte has to be inside of its array, otherwise it raises IndexError. The new array is then
flat.

Source and `out` may overlap; the result is as if all had been read first. Long copies release the GIL, and any number
of threads may copy. Nobody else may write the memory meanwhile. The plan is kept for the next array of the same shape
and strides.

Raises TypeError (not arrays, other elements), ValueError (sizes, read-only), BufferError (memory of a GPU).)doc");
    module.def(
        "scatter", &scatter, nb::arg("packed"), nb::arg("target"), nb::kw_only(), nb::arg("layout") = nb::none(),
        nb::sig("def scatter(packed: Array, target: Array | Sequence[Array], *, layout: Layout | None = None) -> "
                "None"),
        R"doc(Copies a contiguous array into the elements of an array of any strides: the reverse of gather().

Raises ValueError also if some byte of `target` would be written more than once. For the rest see gather().)doc");
    module.def("copy", &copy, nb::arg("source"), nb::arg("target"), nb::kw_only(),
               nb::arg("source_layout") = nb::none(), nb::arg("target_layout") = nb::none(),
               nb::sig("def copy(source: Array | Sequence[Array], target: Array | Sequence[Array], *, source_layout: "
                       "Layout | None = None, target_layout: Layout | None = None) -> None"),
               R"doc(Copies the elements of one array into those of another one, both of any strides, in one pass.

Both are read and written in C order; they need the same number of bytes, and not the same shape. For the rest see
gather() and scatter().)doc");
}

} // namespace ucxl::python
