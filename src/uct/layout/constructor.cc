// Registers the components when the shared library is loaded, so a program needs to do nothing else.
#include "init.h"

namespace
{

// Runs after the dynamic initialisers of this library (default priority, last object in the link) and before any user
// code.
[[gnu::constructor]] void register_layout_component()
{
    try {
        ucxl::uct_layout_init();
    } catch (...) {
        // Out of memory while loading: the program continues as if the library were absent.
        return;
    }
}

} // namespace
