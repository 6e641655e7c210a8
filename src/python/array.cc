#include "array.h"

#include "dlpack.h"
#include "window_object.h"

#include <bit>
#include <string_view>

namespace ucxl::python
{

namespace
{

constexpr std::int64_t max_bytes = std::int64_t{UCP_LAYOUT_MAX_LENGTH};

// A window says so, too, but nobody can read it (window_object.cc).
bool is_on_gpu(nb::handle object)
{
    return nb::hasattr(object, "__cuda_array_interface__") && !nb::isinstance<window_object>(object);
}

// Whether a format of the buffer protocol has pointers to objects in it. What is between colons is the name of a field.
bool has_objects(std::string_view format)
{
    bool is_name = false;
    for (const char each : format) {
        is_name = is_name != (each == ':');
        if (each == 'O' && !is_name) {
            return true;
        }
    }
    return false;
}

char kind_of_format(char letter)
{
    switch (letter) {
    case '?':
        return 'b';
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return 'i';
    case 'B':
    case 'c':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        return 'u';
    case 'e':
    case 'f':
    case 'd':
    case 'g':
        return 'f';
    default:
        return 'V';
    }
}

element_type type_of_format(std::string_view format, std::int64_t size)
{
    element_type type{.kind = 'V', .is_swapped = false, .size = size};
    if (!format.empty() && std::string_view("@=<>!").find(format.front()) != format.npos) {
        type.is_swapped = format.front() == '>' || format.front() == '!';
        format.remove_prefix(1);
    }
    if (format.size() == 1) {
        type.kind = kind_of_format(format.front());
    } else if (format.size() == 2 && format.front() == 'Z') {
        type.kind = 'c';
    }
    type.is_swapped = type.is_swapped && type.kind != 'V' && size > 1;
    return type;
}

// Of NumPy: byte order, kind, and a size that counts characters in the kind U.
element_type type_of_typestr(std::string_view text, std::int64_t size)
{
    const char kind     = text.size() > 1 ? text[1] : 'V';
    const bool is_plain = std::string_view("biufc").find(kind) != std::string_view::npos;
    return {.kind = is_plain ? kind : 'V', .is_swapped = is_plain && text.front() == '>', .size = size};
}

char kind_of_code(std::uint8_t code)
{
    switch (code) {
    case dlpack::integer:
        return 'i';
    case dlpack::unsigned_integer:
        return 'u';
    case dlpack::floating:
        return 'f';
    case dlpack::brain_floating:
        return 'g';
    case dlpack::complex:
        return 'c';
    case dlpack::boolean:
        return 'b';
    default:
        return 'V';
    }
}

bool is_readable_device(int kind)
{
    return kind == dlpack::cpu || kind == dlpack::cuda_host || kind == dlpack::rocm_host;
}

std::int64_t as_integer(nb::handle object, const char* name, const char* what)
{
    const long long value = PyLong_Check(object.ptr()) ? PyLong_AsLongLong(object.ptr()) : -1;
    if (PyErr_Occurred() != nullptr || !PyLong_Check(object.ptr())) {
        PyErr_Clear();
        raise(PyExc_TypeError, "{}: {} is no whole number of 64 bits", name, what);
    }
    return value;
}

// NumPy says of its own arrays what is in them. Nothing else is believed what an address is.
bool is_of_numpy(nb::handle object)
{
    const nb::object module = nb::getattr(object.type(), "__module__", nb::none());
    return nb::isinstance<nb::str>(module) && std::string_view(nb::str(module).c_str()).starts_with("numpy");
}

} // namespace

bool element_type::fits(const element_type& other) const
{
    const auto is_byte = [](const element_type& type) {
        return type.size == 1 && (type.kind == 'u' || type.kind == 'V');
    };
    if (is_byte(*this) || is_byte(other)) {
        return true;
    }
    return size == other.size &&
           (kind == 'V' || other.kind == 'V' || (kind == other.kind && is_swapped == other.is_swapped));
}

std::string element_type::name() const
{
    const std::string_view word = kind == 'b'   ? "bool"
                                  : kind == 'i' ? "int"
                                  : kind == 'u' ? "uint"
                                  : kind == 'f' ? "float"
                                  : kind == 'g' ? "bfloat"
                                  : kind == 'c' ? "complex"
                                                : "";
    if (word.empty()) {
        return std::format("elements of {} bytes", size);
    }
    return kind == 'b' ? "bool" : std::format("{}{}{}", word, size * 8, is_swapped ? " with its bytes swapped" : "");
}

array::array(nb::handle object, const char* name) : _object(nb::borrow(object)), _name(name)
{
    if (!take_buffer() && !take_interface() && !take_dlpack()) {
        raise(PyExc_TypeError,
              "{}: '{}' is no array: it has neither the buffer protocol nor DLPack, and is not of NumPy", name,
              type_name_of(object));
    }
    check_size();
    ucp_layout_window_h window = nullptr;
    if (ucp_layout_window_find(_data, 0, &window) == UCS_OK) {
        raise(PyExc_ValueError, "{}: {} is the address of a window, which only UCX can read and write", name,
              static_cast<const void*>(_data));
    }
}

bool array::take_buffer()
{
    if (!PyObject_CheckBuffer(_object.ptr())) {
        return false;
    }
    auto& view = _buffer.view;
    if (PyObject_GetBuffer(_object.ptr(), &view, PyBUF_RECORDS_RO) != 0) {
        view.obj = nullptr;
        const nb::python_error refused; // takes the exception away, because what follows asks Python
        // NumPy has no format for some of its types, and says where the bytes are in another way.
        if (is_of_numpy(_object)) {
            return false;
        }
        throw refused;
    }
    const std::string_view format = view.format != nullptr ? view.format : "B";
    if (has_objects(format)) {
        raise(PyExc_TypeError, "{}: the elements are Python objects, which cannot be copied as bytes", _name);
    }
    check_dims(view.ndim);
    _data         = static_cast<std::byte*>(view.buf);
    _is_read_only = view.readonly != 0;
    _num_dims     = view.ndim;
    _type         = type_of_format(format, view.itemsize);
    // Some exporters leave out what contiguous memory does not need, though they were asked for it.
    for (int i = 0; i < _num_dims; ++i) {
        _shape[i] = view.shape != nullptr ? view.shape[i] : view.len / (view.itemsize > 0 ? view.itemsize : 1);
    }
    set_contiguous_strides();
    for (int i = 0; i < _num_dims && view.strides != nullptr; ++i) {
        _strides[i] = view.strides[i];
    }
    return true;
}

bool array::take_dlpack()
{
    if (!nb::hasattr(_object, "__dlpack__") || !nb::hasattr(_object, "__dlpack_device__")) {
        if (is_on_gpu(_object)) {
            raise(PyExc_BufferError, "{}: the array is in memory of a GPU, only memory that the CPU can read is taken",
                  _name);
        }
        return false;
    }
    const nb::object device = _object.attr("__dlpack_device__")();
    if (!nb::isinstance<nb::tuple>(device) || nb::len(device) != 2) {
        raise(PyExc_TypeError, "{}: __dlpack_device__ gives no pair of numbers", _name);
    }
    const auto kind = as_integer(nb::borrow(device[0]), _name, "the DLPack device");
    if (!is_readable_device(static_cast<int>(kind))) {
        raise(PyExc_BufferError,
              "{}: the array is in memory of a device ({}, DLPack device type {}), only memory that the CPU can read "
              "is taken",
              _name,
              kind == dlpack::cuda   ? "CUDA"
              : kind == dlpack::rocm ? "ROCm"
                                     : "another one",
              kind);
    }
    nb::object capsule;
    try {
        capsule = _object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (nb::python_error& failure) {
        if (!failure.matches(PyExc_TypeError)) {
            throw;
        }
        capsule = _object.attr("__dlpack__")(); // from before version 1
    }
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
        const auto* const managed =
            static_cast<const dlpack::versioned_tensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
        if (managed->major_version != 1) {
            raise(PyExc_BufferError, "{}: DLPack of version {}, only version 1 is known", _name,
                  managed->major_version);
        }
        take_tensor(&managed->tensor, (managed->flags & dlpack::is_read_only) != 0);
        _is_copied = (managed->flags & dlpack::is_copied) != 0;
    } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
        const auto* const managed =
            static_cast<const dlpack::managed_tensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
        take_tensor(&managed->tensor, false);
    } else {
        raise(PyExc_TypeError, "{}: __dlpack__ gives no capsule of DLPack", _name);
    }
    _capsule = std::move(capsule); // not consumed: it releases the tensor when it ends
    return true;
}

void array::take_tensor(const void* pointer, bool read_only)
{
    const auto& tensor = *static_cast<const dlpack::tensor*>(pointer);
    const int bits     = tensor.type.bits * tensor.type.lanes;
    if (bits == 0 || bits % 8 != 0 || tensor.type.code == dlpack::handle) {
        raise(PyExc_TypeError, "{}: elements of {} bits, only whole bytes are taken", _name, bits);
    }
    if (!is_readable_device(tensor.device.kind)) {
        raise(PyExc_BufferError, "{}: the array is in memory of a device (DLPack device type {})", _name,
              static_cast<int>(tensor.device.kind));
    }
    check_dims(tensor.num_dims);
    _data           = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
    _is_read_only   = read_only;
    _num_dims       = tensor.num_dims;
    const char kind = tensor.type.lanes == 1 ? kind_of_code(tensor.type.code) : 'V';
    _type           = {.kind = kind, .is_swapped = false, .size = bits / 8};
    for (int i = 0; i < _num_dims; ++i) {
        _shape[i] = tensor.shape[i];
        if (tensor.strides != nullptr && __builtin_mul_overflow(tensor.strides[i], _type.size, &_strides[i])) {
            raise(PyExc_ValueError, "{}: stride {} of dimension {} is too large", _name, tensor.strides[i], i);
        }
    }
    if (tensor.strides == nullptr) {
        set_contiguous_strides();
    }
}

bool array::take_interface()
{
    if (!is_of_numpy(_object) || !nb::hasattr(_object, "__array_interface__")) {
        return false;
    }
    const auto dtype = nb::getattr(_object, "dtype");
    if (nb::cast<bool>(nb::getattr(dtype, "hasobject"))) {
        raise(PyExc_TypeError, "{}: the elements are Python objects, which cannot be copied as bytes", _name);
    }
    const auto fields  = nb::cast<nb::dict>(_object.attr("__array_interface__"));
    const auto data    = nb::cast<nb::tuple>(fields["data"]);
    const auto shape   = nb::cast<nb::tuple>(fields["shape"]);
    const auto strides = nb::object(fields["strides"]);
    check_dims(static_cast<std::int64_t>(nb::len(shape)));
    _num_dims     = static_cast<int>(nb::len(shape));
    _data         = std::bit_cast<std::byte*>(nb::cast<std::uintptr_t>(data[0]));
    _is_read_only = nb::cast<bool>(data[1]);
    _type         = type_of_typestr(nb::cast<nb::str>(fields["typestr"]).c_str(),
                                    nb::cast<std::int64_t>(nb::getattr(dtype, "itemsize")));
    for (int i = 0; i < _num_dims; ++i) {
        _shape[i] = nb::cast<std::int64_t>(shape[static_cast<std::size_t>(i)]);
    }
    set_contiguous_strides();
    for (int i = 0; i < _num_dims && !strides.is_none(); ++i) {
        _strides[i] = nb::cast<std::int64_t>(nb::borrow<nb::tuple>(strides)[static_cast<std::size_t>(i)]);
    }
    return true;
}

void array::set_contiguous_strides()
{
    std::int64_t stride = _type.size;
    for (int i = _num_dims; i-- > 0;) {
        _strides[i] = stride;
        if (_shape[i] > 0 && __builtin_mul_overflow(stride, _shape[i], &stride)) {
            stride = 0; // check_size() refuses the array
        }
    }
}

void array::check_dims(std::int64_t num_dims) const
{
    if (num_dims < 0 || num_dims > max_dims) {
        raise(PyExc_TypeError, "{}: {} dimensions, at most {} are known", _name, num_dims, max_dims);
    }
}

// So that no product or sum below can overflow.
void array::check_size()
{
    std::int64_t bytes = _type.size, reach = 0;
    bool is_large = false;
    for (const auto each : shape()) {
        _is_empty = _is_empty || each == 0;
        is_large  = is_large || each < 0;
    }
    for (int i = 0; i < _num_dims && !_is_empty && !is_large; ++i) {
        std::int64_t distance = 0;
        is_large              = __builtin_mul_overflow(bytes, _shape[i], &bytes) || bytes > max_bytes ||
                   __builtin_mul_overflow(_strides[i], _shape[i] - 1, &distance) || distance > max_bytes ||
                   distance < -max_bytes;
        reach += is_large ? 0 : (distance < 0 ? -distance : distance);
    }
    if (is_large || reach > max_bytes || _type.size < 0) {
        raise(PyExc_ValueError, "{}: the array is longer than 2^46 bytes", _name);
    }
}

std::int64_t array::num_elements() const
{
    std::int64_t count = _is_empty ? 0 : 1;
    for (int i = 0; i < _num_dims && !_is_empty; ++i) {
        count *= _shape[i];
    }
    return count;
}

bool array::is_contiguous() const
{
    std::int64_t stride = _type.size;
    for (int i = _num_dims; i-- > 0 && !_is_empty;) {
        if (_shape[i] > 1 && _strides[i] != stride) {
            return false;
        }
        stride *= _shape[i];
    }
    return true;
}

extent array::bounds() const
{
    extent found{0, _is_empty ? 0 : _type.size};
    for (int i = 0; i < _num_dims && !_is_empty; ++i) {
        const std::int64_t distance = _strides[i] * (_shape[i] - 1);
        (distance < 0 ? found.lb : found.ub) += distance;
    }
    return found;
}

int array::traverse(visitproc visit, void* arg) const
{
    Py_VISIT(_object.ptr());
    Py_VISIT(_capsule.ptr());
    Py_VISIT(_buffer.view.obj);
    return 0;
}

void array::require_writable() const
{
    if (_is_copied) {
        raise(PyExc_ValueError, "{}: DLPack gives a copy of the array, in which nobody finds what is written", _name);
    }
    if (_is_read_only) {
        raise(PyExc_ValueError, "{}: the array is read-only", _name);
    }
}

void array::require_contiguous() const
{
    if (!is_contiguous()) {
        raise(PyExc_ValueError, "{}: the array is not contiguous in C order", _name);
    }
}

bool is_array(nb::handle object)
{
    return PyObject_CheckBuffer(object.ptr()) || nb::hasattr(object, "__dlpack__") || is_on_gpu(object) ||
           (is_of_numpy(object) && nb::hasattr(object, "__array_interface__"));
}

} // namespace ucxl::python
