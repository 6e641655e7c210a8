// The object behind a ucp_layout_h: a shared layout, a reference count, and a plan compiled at first use.
//
// Invariant: the layout never changes. The plan is null or compiled from it, and never changes once it exists. Thread
// safe.
#pragma once

#include "ucp_layout.h"
#include "ucs/layout/layout.h"
#include "ucs/pack/pack_plan.h"

#include <atomic>
#include <mutex>

struct ucp_layout {
    explicit ucp_layout(ucxl::layout_ptr layout) : value(std::move(layout)) {}

    // The plan, compiled once. Layouts that are only parts of others never pay for one.
    ucxl::result<ucxl::pack_plan_ptr> plan();
    // The plan if it exists already, otherwise null. Takes no lock.
    const ucxl::pack_plan* compiled_plan() const { return _compiled.load(std::memory_order_acquire); }

    void retain() { _references.fetch_add(1, std::memory_order_relaxed); }
    void release();

    const ucxl::layout_ptr value;

private:
    ~ucp_layout() = default;

    std::atomic<unsigned> _references{1};
    std::mutex _lock;
    ucxl::pack_plan_ptr _plan;
    std::atomic<const ucxl::pack_plan*> _compiled{nullptr};
};

namespace ucxl
{

struct release_handle {
    void operator()(ucp_layout* handle) const { handle->release(); }
};

// A counted reference to a ucp_layout_h.
using handle_ptr = std::unique_ptr<ucp_layout, release_handle>;

inline handle_ptr retain(ucp_layout* handle)
{
    handle->retain();
    return handle_ptr(handle);
}

} // namespace ucxl
