// Slots of classes that keep arrays: the arrays may refer to the object in turn, and Python has to find such cycles.
// The class has traverse(visit, arg), which visits each reference that the object owns, and clear(), which ends it.
//
// Example: PyType_Slot slots[] = {traverse_slot<window_object>(), clear_slot<window_object>(), {0, nullptr}};
//          nb::class_<window_object>(module, "Window", nb::type_slots(slots))
#pragma once

#include <nanobind/nanobind.h>

namespace ucxl::python
{

template <typename Object>
PyType_Slot traverse_slot()
{
    const traverseproc traverse = [](PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        return nanobind::inst_ready(self) ? nanobind::inst_ptr<Object>(self)->traverse(visit, arg) : 0;
    };
    return {Py_tp_traverse, reinterpret_cast<void*>(traverse)};
}

template <typename Object>
PyType_Slot clear_slot()
{
    const inquiry clear = [](PyObject* self) {
        if (nanobind::inst_ready(self)) {
            nanobind::inst_ptr<Object>(self)->clear();
        }
        return 0;
    };
    return {Py_tp_clear, reinterpret_cast<void*>(clear)};
}

} // namespace ucxl::python
