#include "init.h"

#include "abi/log.h"
#include "abi/ucx.h"
#include "ucs/window/window_config.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/cma/lay_cma.h"
#include "uct/layout/copy/lay_copy.h"
#include "uct/layout/copy/md.h"
#include "uct/layout/messages/hooks.h"
#include "uct/layout/peer/limits.h"
#include "uct/layout/peer/memory_figures.h"
#include "uct/layout/shm/lay_shm.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace ucxl
{

namespace
{

result<void> register_all()
{
    register_window_config();
    register_lay_shm_config();
    register_hook_options();
    // lay_copy first: the others are of no use without it.
    if (!register_component(layout_component, lay_copy_tl) || !register_component(lay_shm_component, lay_shm_tl) ||
        !register_component(lay_cma_component, lay_cma_tl)) {
        return fail(errc::no_memory, "no memory for the options of the transports");
    }
    install_hooks();
    publish_failure_counts();
    memory_figures::publish();
    return {};
}

} // namespace

result<void> uct_layout_init(const void* caller)
{
    static std::atomic<bool> is_registered{false};
    if (is_registered.load(std::memory_order_acquire)) {
        return {};
    }
    static std::mutex& lock = *new std::mutex;
    static std::optional<result<void>> done;
    const std::lock_guard guard(lock);
    if (done) {
        return *done;
    }
    const auto attached = abi::attach(caller);
    if (!attached && attached.error().code == errc::no_device) {
        return std::unexpected(attached.error());
    }
    done = attached ? register_all() : std::unexpected(attached.error());
    if (*done) {
        ucs_info("ucx-layout works with UCX %s in %s", (*attached)->releases, abi::attached_file().c_str());
    } else {
        ucs_error("ucx-layout is not available: %s", done->error().message.c_str());
    }
    is_registered = done->has_value();
    return *done;
}

} // namespace ucxl
