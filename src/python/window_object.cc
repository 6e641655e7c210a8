#include "window_object.h"

#include "collected.h"
#include "layout_object.h"
#include "ucx.h"

#include <bit>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

namespace ucxl::python
{

namespace
{

std::uintptr_t address_of(const window_object& window)
{
    return std::bit_cast<std::uintptr_t>(window.get().address());
}

bool is_read_only(const window_object& window)
{
    window.get();
    for (const array& each : window.shown().arrays()) {
        if (each.is_read_only()) {
            return true;
        }
    }
    return window.shown().layout().overlap() == UCP_LAYOUT_OVERLAP_SOME;
}

nb::dict interface_of(const window_object& window)
{
    nb::dict fields;
    fields["data"]    = nb::make_tuple(address_of(window), nb::bool_(is_read_only(window)));
    fields["shape"]   = nb::make_tuple(window.get().length());
    fields["typestr"] = "|u1";
    fields["version"] = 3;
    return fields;
}

std::unique_ptr<window_object> make_window(nb::handle array, const layout_object* layout)
{
    auto shown = std::make_unique<operand>(array, "array", layout_or_null(layout));
    ucx();
    return std::make_unique<window_object>(nullptr, std::move(shown));
}

std::string carrier_of(const window_object& window)
{
    switch (window.get().carrier()) {
    case UCP_LAYOUT_CARRIER_KEYS:
        return "keys";
    case UCP_LAYOUT_CARRIER_COPIES:
        return "copies";
    case UCP_LAYOUT_CARRIER_DIRECT:
        return "direct";
    case UCP_LAYOUT_CARRIER_UNDECIDED:
        break;
    }
    return "undecided";
}

} // namespace

window_object::window_object(ucp_context_h context, std::unique_ptr<operand>&& shown)
{
    _window = checked(shown->name(),
                      [&] { return ucx_layout::window::map(context, shown->layout().handle(), shown->const_bases()); });
    _shown  = std::move(shown);
}

window_object::~window_object()
{
    close();
}

void window_object::close()
{
    end();
}

std::unique_ptr<operand> window_object::end()
{
    if (!_process.is_here()) {
        new std::optional(std::move(_window)); // it is its parent's, and stays until this process ends
    }
    _window.reset();
    return std::move(_shown);
}

const ucx_layout::window& window_object::get() const
{
    if (!_window) {
        raise(PyExc_ValueError, "Window: it is closed");
    }
    if (!_process.is_here()) {
        raise(PyExc_RuntimeError, "Window: it was made before fork(), by the parent of this process");
    }
    return *_window;
}

void bind_window(nb::module_& module)
{
    PyType_Slot slots[] = {traverse_slot<window_object>(), clear_slot<window_object>(), {0, nullptr}};
    nb::class_<window_object>(
        module, "Window", nb::type_slots(slots), nb::is_final(),
        R"doc(Arrays of any strides as one buffer of UCX. Made by window(); a context manager that closes it.

It has an address and a length, which calls of UCX take as those of any buffer. Nobody else can use them: the CPU cannot
read the address, so a Window has no buffer protocol, and NumPy refuses it. For libraries over UCX that read
__cuda_array_interface__ (ucxx) or __array_interface__ it is an array of bytes. It keeps its arrays until it is
closed.)doc")
        .def_prop_ro("address", &address_of, "For calls of UCX. Raises ValueError if the window is closed.")
        .def_prop_ro(
            "length", [](const window_object& window) { return window.get().length(); }, "Packed bytes.")
        .def_prop_ro(
            "nbytes", [](const window_object& window) { return window.get().length(); }, "The same as length.")
        .def_prop_ro("layout",
                     [](const window_object& window) {
                         window.get();
                         return layout_object{window.shown().layout_ptr()};
                     })
        .def_prop_ro("closed", [](const window_object& window) { return !window.is_open(); })
        .def_prop_ro("read_only", &is_read_only,
                     "Whether nothing may be received into it: an array is read-only, or bytes are shown twice.")
        .def_prop_ro("carrier", &carrier_of,
                     "Who moves the bytes to other hosts: 'keys', 'copies', 'direct', or 'undecided' before the first "
                     "use.")
        .def_prop_ro("__array_interface__", &interface_of, nb::sig("def __array_interface__(self) -> dict[str, Any]"),
                     "For libraries over UCX, which pass on the address and do not read it.")
        .def_prop_ro("__cuda_array_interface__", &interface_of,
                     nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"),
                     "The same for ucxx, which asks for nothing else that the CPU need not read. No GPU can read it.")
        .def_prop_ro(
            "__array_struct__",
            [](const window_object&) -> nb::object {
                raise(PyExc_TypeError, "Window: only UCX can read and write its address; gather() copies the bytes");
            },
            nb::sig("def __array_struct__(self) -> Any"),
            "Always raises TypeError, so that NumPy does not read the window.")
        .def("close", &window_object::close,
             "Ends the window and lets its arrays go. Nothing may be using it. Closing "
             "twice is allowed.")
        .def(
            "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Window"))
        .def(
            "__exit__", [](window_object& window, nb::args) { window.close(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
    module.def("window", &make_window, nb::arg("array"), nb::kw_only(), nb::arg("layout") = nb::none(),
               nb::sig("def window(array: Array | Sequence[Array], *, layout: Layout | None = None) -> Window"),
               R"doc(A window over the elements of an array, or over what a layout describes of it.

Arguments as for gather(). Works in every context of the process's UCX, if that was loaded before the context was made;
attach() loads it. Raises RuntimeError if there is no UCX.)doc");
    module.def(
        "attach", [] { return ucx().file; },
        R"doc(Loads UCX if no package has done so, and returns the file of its libucp.

Contexts of UCX that are made after `import ucx_layout` and this call have windows.)doc");
}

} // namespace ucxl::python
