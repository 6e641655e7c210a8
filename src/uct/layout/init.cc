#include "init.h"

#include "ucs/window/window_config.h"
#include "uct/abi/abi_check.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/cma/lay_cma.h"
#include "uct/layout/copy/lay_copy.h"
#include "uct/layout/copy/md.h"
#include "uct/layout/messages/hooks.h"
#include "uct/layout/peer/limits.h"
#include "uct/layout/shm/lay_shm.h"

#include <ucs/debug/log_def.h>

#include <mutex>

namespace ucxl
{

result<void> uct_layout_status()
{
    return abi::abi_check();
}

void uct_layout_init()
{
    static std::once_flag once;
    std::call_once(once, [] {
        if (const auto status = uct_layout_status(); !status) {
            ucs_error("ucx-layout is not available: %s", status.error().message.c_str());
            return;
        }
        register_window_config();
        register_lay_shm_config();
        register_hook_options();
        uct_component_register(&layout_component);
        uct_tl_register(&layout_component, &lay_copy_tl);
        uct_component_register(&lay_shm_component);
        uct_tl_register(&lay_shm_component, &lay_shm_tl);
        uct_component_register(&lay_cma_component);
        uct_tl_register(&lay_cma_component, &lay_cma_tl);
        install_hooks();
        publish_failure_counts();
    });
}

} // namespace ucxl
