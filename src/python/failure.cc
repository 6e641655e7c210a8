#include "failure.h"

#include <string_view>
#include <utility>

namespace ucxl::python
{

namespace
{

thread_local error_text* innermost = nullptr;

} // namespace

void raise_text(PyObject* kind, const std::string& text)
{
    PyErr_SetString(kind, text.c_str());
    throw nb::python_error();
}

PyObject* kind_of(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_EXCEEDS_LIMIT:
    case UCS_ERR_INVALID_ADDR:
    case UCS_ERR_MESSAGE_TRUNCATED:
    case UCS_ERR_OUT_OF_RANGE:
    case UCS_ERR_BUFFER_TOO_SMALL:
        return PyExc_ValueError;
    case UCS_ERR_NO_MEMORY:
        return PyExc_MemoryError;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NOT_IMPLEMENTED:
        return PyExc_NotImplementedError;
    case UCS_ERR_TIMED_OUT:
        return PyExc_TimeoutError;
    case UCS_ERR_IO_ERROR:
        return PyExc_OSError;
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
        return PyExc_ConnectionResetError;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
        return PyExc_ConnectionError;
    default:
        return PyExc_RuntimeError;
    }
}

const char* meaning_of(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_INVALID_PARAM:
        return "invalid parameter";
    case UCS_ERR_EXCEEDS_LIMIT:
        return "a limit is exceeded";
    case UCS_ERR_MESSAGE_TRUNCATED:
        return "the message is longer than what receives it";
    case UCS_ERR_NO_MEMORY:
        return "out of memory";
    case UCS_ERR_UNSUPPORTED:
        return "not supported";
    case UCS_ERR_NO_DEVICE:
        return "no such device or transport";
    case UCS_ERR_CANCELED:
        return "cancelled";
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_ENDPOINT_TIMEOUT:
        return "no answer in time";
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
        return "the connection is closed";
    case UCS_ERR_UNREACHABLE:
        return "the peer cannot be reached";
    case UCS_ERR_INVALID_ADDR:
        return "the remote memory is not valid any more";
    case UCS_ERR_IO_ERROR:
        return "input or output error";
    default:
        return "UCX error";
    }
}

error_text::error_text() : _outer(std::exchange(innermost, this))
{
    ucp_layout_capture_errors(_text, sizeof(_text));
}

error_text::~error_text()
{
    innermost = _outer;
    if (_outer != nullptr) {
        ucp_layout_capture_errors(_outer->_text, sizeof(_outer->_text));
    } else {
        ucp_layout_capture_errors(nullptr, 0);
    }
}

void error_text::check(ucs_status_t status, const char* where) const
{
    if (status == UCS_OK) {
        return;
    }
    // "ucp_layout_parse: column 7: ..." is about a function that the caller does not know.
    std::string_view reason = _text;
    if (reason.starts_with("ucp_layout_")) {
        const auto colon = reason.find(": ");
        reason.remove_prefix(colon == reason.npos ? 0 : colon + 2);
    }
    raise(kind_of(status), "{}: {}", where, reason.empty() ? std::string_view(meaning_of(status)) : reason);
}

} // namespace ucxl::python
