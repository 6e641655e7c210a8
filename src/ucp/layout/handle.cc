#include "handle.h"

#include "layout_table.h"

using namespace ucxl;

result<pack_plan_ptr> ucp_layout::plan()
{
    if (compiled_plan() != nullptr) {
        return _plan;
    }
    // Not under a lock: a child that is forked meanwhile may make the same layout, and would wait for ever.
    auto compiled = UCXL_TRY(pack_plan::compile(value));
    return layout_table::instance().set_plan(*this, std::move(compiled));
}

void ucp_layout::release()
{
    std::size_t references = _references.load(std::memory_order_relaxed);
    while (references > 1) {
        if (_references.compare_exchange_weak(references, references - 1, std::memory_order_release,
                                              std::memory_order_relaxed)) {
            return;
        }
    }
    layout_table::instance().release(*this);
}

void ucp_layout_destroy(ucp_layout_h layout)
{
    if (layout != nullptr) {
        layout->release();
    }
}
