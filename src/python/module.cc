// The module ucx_layout._core.
#include "layout_object.h"
#include "memory.h"
#include "movement.h"
#include "window_object.h"
#include "worker.h"

NB_MODULE(_core, module)
{
    using namespace ucxl::python;
    // Objects that live until the interpreter ends are no leak.
    nb::set_leak_warnings(false);
    module.attr("__version__") = ucp_layout_get_version_string();
    bind_layout(module);
    bind_creation(module);
    bind_movement(module);
    bind_memory(module);
    bind_window(module);
    bind_worker(module);
}
