// The class Layout of Python, and what the functions that take layouts share.
#pragma once

#include "shared_layout.h"

#include <functional>

namespace ucxl::python
{

struct layout_object {
    shared_layout_ptr value;

    bool operator==(const layout_object& other) const
    {
        // Layouts of equal content have one handle.
        return value->handle().get() == other.value->handle().get();
    }
};

// For arguments that may be None.
inline shared_layout_ptr layout_or_null(const layout_object* given)
{
    return given != nullptr ? given->value : nullptr;
}

// An element: a number of bytes, or a Layout. `keep` gets the layout, which must outlive the element.
ucx_layout::layout::element element_of(nb::handle object, const char* name, std::vector<shared_layout_ptr>& keep);

// An integer of Python, or of NumPy.
std::int64_t integer_of(nb::handle object, const char* name);
// A sequence of integers or an array of them, in C order; or one integer, if `is_one_allowed`.
std::vector<std::int64_t> integers_of(nb::handle object, const char* name, bool is_one_allowed = false);

// Where integers of 64 bits go: the first place, and the bytes from one to the next.
struct integer_places {
    std::byte* first;
    std::size_t step;
};
// Makes places for so many.
using places_for_integers = std::function<integer_places(std::size_t)>;
// The same integers. The places are asked for once.
void read_integers(nb::handle object, const char* name, bool is_one_allowed, const places_for_integers& places_for);

void bind_layout(nb::module_& module);
void bind_creation(nb::module_& module);

} // namespace ucxl::python
