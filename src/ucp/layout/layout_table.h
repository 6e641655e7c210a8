// The layouts of the process that have a handle, each content once. Who makes a layout of the same content again gets
// the same handle: one plan serves all, and the window cache compares two layouts by their addresses, however many
// blocks they have.
//
// A new layout is compared with the one of the same hash completely, once. Peers can choose layouts whose hashes are
// equal: these are kept in the order of their content, so each costs a few comparisons more and not one with all.
//
// The table holds no references: a layout leaves it with its last handle. Only the table's lock lets the count of
// references end, or rise without a reference of the caller's, so the table never gives out a handle that is ending.
//
// Thread safe. Fork holds the lock. It may be taken under the lock of map_state.h; nothing else is taken under it.
#pragma once

#include "handle.h"

#include <mutex>

namespace ucxl
{

class layout_table
{
public:
    static layout_table& instance();

    // Returns a reference to the handle of this content. Throws std::bad_alloc.
    handle_ptr share(layout_ptr made);
    // Removes a reference, perhaps the last one.
    void release(ucp_layout& handle) noexcept;
    // Keeps the plan unless there is one already, and returns the one that is kept.
    pack_plan_ptr set_plan(ucp_layout& handle, pack_plan_ptr compiled);

private:
    layout_table() = default;

    handle_ptr find_by_hash(const layout& wanted);

    std::mutex _lock;
    layouts_by_content _living;
};

} // namespace ucxl
