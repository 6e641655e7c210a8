#include "init.h"

#include "lay_copy.h"
#include "layout_md.h"
#include "ucs/window/window_config.h"
#include "uct/abi/abi_check.h"

#include <ucs/debug/log_def.h>

#include <mutex>

namespace ucxl
{

void uct_layout_init()
{
    static std::once_flag once;
    std::call_once(once, [] {
        if (const auto known = abi_check(); !known) {
            ucs_error("ucx-layout is not available: %s", known.error().message.c_str());
            return;
        }
        register_window_config();
        uct_component_register(&layout_component);
        uct_tl_register(&layout_component, &lay_copy_tl);
    });
}

} // namespace ucxl
