// Exceptions of Python with a message that names the argument.
//
// Example: raise(PyExc_ValueError, "out: {} bytes, the array has {}", given, wanted);
#pragma once

#include <format>
#include <nanobind/nanobind.h>
#include <string>
#include <ucp_layout.hpp>

namespace ucxl::python
{

namespace nb = nanobind;

[[noreturn]] void raise_text(PyObject* kind, const std::string& text);

template <typename... Values>
[[noreturn]] void raise(PyObject* kind, std::format_string<Values...> format, Values&&... values)
{
    raise_text(kind, std::format(format, std::forward<Values>(values)...));
}

// Of the object's class, for messages.
inline std::string type_name_of(nb::handle object)
{
    return nb::type_name(object.type()).c_str();
}

// The kind of exception that says the same as a status.
PyObject* kind_of(ucs_status_t status);

// What a status says, also where UCX is not loaded.
const char* meaning_of(ucs_status_t status);

// While it exists, what libucp_layout finds wrong in this thread goes into its text and not into the log.
// They nest.
class error_text
{
public:
    error_text();
    ~error_text();
    error_text(const error_text&)            = delete;
    error_text& operator=(const error_text&) = delete;

    // Raises if the status is an error: "WHERE: what libucp_layout said".
    void check(ucs_status_t status, const char* where) const;

private:
    error_text* _outer; // of this thread
    char _text[1024];   // not filled: this is on the way of every short copy
};

// Calls call(), which returns a status or a result<T>, and raises its error.
template <typename Call>
auto checked(const char* where, Call&& call)
{
    const error_text text;
    auto outcome = call();
    if constexpr (std::is_same_v<decltype(outcome), ucs_status_t>) {
        text.check(outcome, where);
    } else {
        text.check(outcome ? UCS_OK : outcome.error(), where);
        return std::move(*outcome);
    }
}

} // namespace ucxl::python
