// The memory of an array of Python: where it is, its shape, strides and element type.
//
// It is read by the buffer protocol; else, for types that this has no letters for, by NumPy's __array_interface__; else
// by DLPack. As long as the object exists,
// the array keeps its memory: an exported buffer is not resized, and an object that is referred to is not freed. It is
// made and destroyed with the GIL held.
//
// Example: const array source(object, "source");   // raises if the object has no memory that the CPU can read
#pragma once

#include "failure.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ucxl::python
{

// What an element is, as far as that decides what may be copied to where.
struct element_type {
    char kind         = 'V'; // of NumPy: b(oolean) i u f c; g: bfloat16; V: anything else of this size
    bool is_swapped   = false;
    std::int64_t size = 1; // bytes

    // Bytes fit to everything, and what is unknown to everything of its size.
    bool fits(const element_type& other) const;
    std::string name() const;
};

struct extent {
    std::int64_t lb, ub; // bytes from the first element; the second one is behind the last byte
};

class array
{
public:
    static constexpr int max_dims = 64; // what NumPy and the buffer protocol allow

    // `name` is that of the argument; it outlives the array.
    array(nb::handle object, const char* name);
    array(const array&)            = delete;
    array& operator=(const array&) = delete;

    std::byte* data() const { return _data; }
    // Also a copy that was made for this array.
    bool is_read_only() const { return _is_read_only || _is_copied; }
    const element_type& type() const { return _type; }
    std::span<const std::int64_t> shape() const { return {_shape, static_cast<std::size_t>(_num_dims)}; }
    std::span<const std::int64_t> strides() const { return {_strides, static_cast<std::size_t>(_num_dims)}; }
    std::int64_t num_elements() const;
    std::int64_t num_bytes() const { return num_elements() * _type.size; }
    bool is_contiguous() const; // in C order
    extent bounds() const;      // of all elements
    nb::handle object() const { return _object; }
    const char* name() const { return _name; }

    void require_writable() const;
    void require_contiguous() const;
    // What it refers to, for tp_traverse of the object that has it.
    int traverse(visitproc visit, void* arg) const;

private:
    bool take_buffer();
    bool take_dlpack();
    bool take_interface();
    void take_tensor(const void* tensor, bool read_only);
    void set_contiguous_strides();
    void check_dims(std::int64_t num_dims) const;
    void check_size();

    struct exported_buffer {
        Py_buffer view{}; // its `obj` is null unless the memory is from the buffer protocol

        ~exported_buffer()
        {
            if (view.obj != nullptr) {
                PyBuffer_Release(&view);
            }
        }
    };

    nb::object _object;
    const char* _name;
    exported_buffer _buffer;
    nb::object _capsule; // of DLPack
    std::byte* _data   = nullptr;
    bool _is_read_only = false;
    bool _is_copied    = false; // by DLPack
    bool _is_empty     = false;
    int _num_dims      = 0;
    element_type _type;
    std::int64_t _shape[max_dims], _strides[max_dims];
};

// Whether the object is shown to be an array by one of the three protocols, without looking at its memory.
bool is_array(nb::handle object);

} // namespace ucxl::python
