#include "handle.h"

using namespace ucxl;

result<pack_plan_ptr> ucp_layout::plan()
{
    const std::lock_guard guard(_lock);
    if (_plan == nullptr) {
        _plan = UCXL_TRY(pack_plan::compile(value));
        _compiled.store(_plan.get(), std::memory_order_release);
    }
    return _plan;
}

void ucp_layout::release()
{
    if (_references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete this;
    }
}

void ucp_layout_destroy(ucp_layout_h layout)
{
    if (layout != nullptr) {
        layout->release();
    }
}
