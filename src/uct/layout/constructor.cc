// For the shared library: loading it is all a program has to do.
#include "init.h"

namespace
{

// After the dynamic initialisers of this library (default priority, last object in the link), before any user code.
[[gnu::constructor]] void register_layout_component()
{
    try {
        ucxl::uct_layout_init();
    } catch (...) {
        // Out of memory while loading: the program goes on without the component, as if the library were not there.
        return;
    }
}

} // namespace
