// Integers of Python and arrays of them, and elements of layouts.
#include "layout_object.h"

#include <cstring>

namespace ucxl::python
{

namespace
{

template <typename Integer>
void append(const array& source, std::vector<std::int64_t>& numbers)
{
    const auto shape = source.shape(), strides = source.strides();
    std::vector<std::int64_t> index(shape.size(), 0);
    const std::byte* at       = source.data();
    const std::size_t last    = shape.empty() ? 0 : shape.size() - 1;
    const std::int64_t inner  = shape.empty() ? 1 : shape[last];
    const std::int64_t stride = shape.empty() ? 0 : strides[last];
    for (std::int64_t left = source.num_elements(); left > 0; left -= inner) {
        for (std::int64_t i = 0; i < inner; ++i) {
            Integer value;
            std::memcpy(&value, at + i * stride, sizeof(value));
            if (std::cmp_greater(value, INT64_MAX)) {
                raise(PyExc_ValueError, "{}: {} is too large", source.name(), value);
            }
            numbers.push_back(static_cast<std::int64_t>(value));
        }
        for (std::size_t dim = last; dim-- > 0;) {
            at += strides[dim];
            if (++index[dim] < shape[dim]) {
                break;
            }
            at -= strides[dim] * shape[dim];
            index[dim] = 0;
        }
    }
}

std::vector<std::int64_t> integers_of_array(const array& source)
{
    std::vector<std::int64_t> numbers;
    numbers.reserve(static_cast<std::size_t>(source.num_elements()));
    const auto& type      = source.type();
    const bool is_integer = (type.kind == 'i' || type.kind == 'u') && !type.is_swapped &&
                            std::string_view("\1\2\4\10").find(static_cast<char>(type.size)) != std::string_view::npos;
    if (!is_integer) {
        raise(PyExc_TypeError, "{}: an array of {}, integers are needed", source.name(), type.name());
    }
    const bool is_signed = type.kind == 'i';
    switch (type.size) {
    case 1:
        is_signed ? append<std::int8_t>(source, numbers) : append<std::uint8_t>(source, numbers);
        break;
    case 2:
        is_signed ? append<std::int16_t>(source, numbers) : append<std::uint16_t>(source, numbers);
        break;
    case 4:
        is_signed ? append<std::int32_t>(source, numbers) : append<std::uint32_t>(source, numbers);
        break;
    default:
        is_signed ? append<std::int64_t>(source, numbers) : append<std::uint64_t>(source, numbers);
    }
    return numbers;
}

} // namespace

std::int64_t integer_of(nb::handle object, const char* name)
{
    const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        raise(PyExc_TypeError, "{}: '{}' is no integer", name, type_name_of(object));
    }
    int is_beyond          = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &is_beyond);
    if (is_beyond != 0) {
        raise(PyExc_ValueError, "{}: the number has more than 64 bits", name);
    }
    return number;
}

std::vector<std::int64_t> integers_of(nb::handle object, const char* name, bool is_one_allowed)
{
    if (is_array(object)) {
        const array source(object, name);
        if (!source.shape().empty() || !is_one_allowed) {
            return integers_of_array(source);
        }
    }
    if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
        std::vector<std::int64_t> numbers;
        for (const nb::handle each : nb::borrow<nb::sequence>(object)) {
            numbers.push_back(integer_of(each, name));
        }
        return numbers;
    }
    if (!is_one_allowed) {
        raise(PyExc_TypeError, "{}: '{}' is no array, list or tuple of integers", name, type_name_of(object));
    }
    return {integer_of(object, name)};
}

ucx_layout::layout::element element_of(nb::handle object, const char* name, std::vector<shared_layout_ptr>& keep)
{
    if (nb::isinstance<layout_object>(object)) {
        keep.push_back(nb::cast<const layout_object&>(object).value);
        return keep.back()->handle().as_element();
    }
    const std::int64_t length = integer_of(object, name);
    if (length < 0) {
        raise(PyExc_ValueError, "{}: {} bytes, a length is not negative", name, length);
    }
    return {.length = static_cast<std::size_t>(length), .layout = nullptr};
}

} // namespace ucxl::python
