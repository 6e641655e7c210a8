// The class Window of Python: the window, and the arrays that it shows, which it keeps.
#pragma once

#include "memory.h"
#include "operand.h"

namespace ucxl::python
{

class window_object
{
public:
    // `context` may be null. Takes the arrays only if there is a window then.
    window_object(ucp_context_h context, std::unique_ptr<operand>&& shown);
    ~window_object();
    window_object(const window_object&)            = delete;
    window_object& operator=(const window_object&) = delete;

    void close();
    // The same, but the arrays are still kept: by the result.
    std::unique_ptr<operand> end();
    bool is_open() const { return _window.has_value(); }
    const ucx_layout::window& get() const;
    const operand& shown() const { return *_shown; }
    // For collected.h.
    void clear() { close(); }
    int traverse(visitproc visit, void* arg) const { return _shown == nullptr ? 0 : _shown->traverse(visit, arg); }

private:
    made_here _process;
    std::unique_ptr<operand> _shown;
    std::optional<ucx_layout::window> _window;
};

void bind_window(nb::module_& module);

} // namespace ucxl::python
