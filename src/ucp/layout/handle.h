// The object behind a ucp_layout_h: a shared layout, a reference count, and a plan compiled at first use.
//
// Invariant: layouts of equal content have one object (layout_table.h), so comparing pointers compares contents. The
// layout never changes. The plan is null or compiled from it, and never changes once it exists. Thread safe.
#pragma once

#include "ucp_layout.h"
#include "ucs/layout/by_content.h"
#include "ucs/pack/pack_plan.h"

#include <atomic>
#include <map>
#include <memory>

namespace ucxl
{

class layout_table;

using layouts_by_content = std::map<const layout*, std::unique_ptr<ucp_layout>, by_content>;

} // namespace ucxl

struct ucp_layout {
    // Only layout_table makes and destroys objects.
    explicit ucp_layout(ucxl::layout_ptr layout) : value(std::move(layout)) {}

    // The plan. Layouts that are only parts of others never pay for one. Threads that ask first at the same time
    // compile it each, and get the same one.
    ucxl::result<ucxl::pack_plan_ptr> plan();
    // The plan if it exists already, otherwise null. Takes no lock.
    const ucxl::pack_plan* compiled_plan() const { return _compiled.load(std::memory_order_acquire); }

    void retain() { _references.fetch_add(1, std::memory_order_relaxed); }
    void release();

    const ucxl::layout_ptr value;

private:
    friend class ucxl::layout_table;

    std::atomic<std::size_t> _references{1};
    ucxl::pack_plan_ptr _plan;
    std::atomic<const ucxl::pack_plan*> _compiled{nullptr}; // null until _plan is set for ever
    ucxl::layouts_by_content::iterator _place;
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
