// Integers of Python and arrays of them, and elements of layouts.
#include "layout_object.h"

#include <algorithm>
#include <cstring>

namespace ucxl::python
{

namespace
{

class integer_writer
{
public:
    explicit integer_writer(const integer_places& places) : _to(places.first), _step(places.step) {}

    void put(std::int64_t number)
    {
        std::memcpy(_to, &number, sizeof(number));
        _to += _step;
    }

private:
    std::byte* _to;
    std::size_t _step;
};

template <typename Integer>
void copy(const array& source, integer_writer numbers)
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
            numbers.put(static_cast<std::int64_t>(value));
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

void read_array(const array& source, const places_for_integers& places_for)
{
    const auto& type      = source.type();
    const bool is_integer = (type.kind == 'i' || type.kind == 'u') && !type.is_swapped &&
                            std::string_view("\1\2\4\10").find(static_cast<char>(type.size)) != std::string_view::npos;
    if (!is_integer) {
        raise(PyExc_TypeError, "{}: an array of {}, integers are needed", source.name(), type.name());
    }
    const integer_writer numbers(places_for(static_cast<std::size_t>(source.num_elements())));
    const bool is_signed = type.kind == 'i';
    switch (type.size) {
    case 1:
        is_signed ? copy<std::int8_t>(source, numbers) : copy<std::uint8_t>(source, numbers);
        break;
    case 2:
        is_signed ? copy<std::int16_t>(source, numbers) : copy<std::uint16_t>(source, numbers);
        break;
    case 4:
        is_signed ? copy<std::int32_t>(source, numbers) : copy<std::uint32_t>(source, numbers);
        break;
    default:
        is_signed ? copy<std::int64_t>(source, numbers) : copy<std::uint64_t>(source, numbers);
    }
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

void read_integers(nb::handle object, const char* name, bool is_one_allowed, const places_for_integers& places_for)
{
    if (is_array(object)) {
        const array source(object, name);
        if (!source.shape().empty() || !is_one_allowed) {
            return read_array(source, places_for);
        }
    }
    if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
        std::vector<std::int64_t> numbers; // a list may change while it is read
        for (const nb::handle each : nb::borrow<nb::sequence>(object)) {
            numbers.push_back(integer_of(each, name));
        }
        integer_writer to(places_for(numbers.size()));
        std::ranges::for_each(numbers, [&](std::int64_t number) { to.put(number); });
        return;
    }
    if (!is_one_allowed) {
        raise(PyExc_TypeError, "{}: '{}' is no array, list or tuple of integers", name, type_name_of(object));
    }
    const std::int64_t number = integer_of(object, name);
    integer_writer(places_for(1)).put(number);
}

std::vector<std::int64_t> integers_of(nb::handle object, const char* name, bool is_one_allowed)
{
    std::vector<std::int64_t> numbers;
    read_integers(object, name, is_one_allowed, [&](std::size_t count) {
        numbers.resize(count);
        return integer_places{reinterpret_cast<std::byte*>(numbers.data()), sizeof(numbers[0])};
    });
    return numbers;
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
