// The plans of this process, each content once. Who compiles a layout of the same content again gets the same plan:
// that of a window of this process and that of a peer's window are then one, which tells a copy between them that all
// blocks lie alike. Many windows of one layout cost one plan.
//
// The table holds no references: a plan leaves it when it ends. Peers can choose layouts whose hashes are equal; these
// are kept in the order of their content, so each costs a few comparisons more and not one with all.
//
// Thread safe. Fork holds the lock. Nothing else is taken under it.
#pragma once

#include "pack_plan.h"

#include "ucs/layout/by_content.h"

#include <map>
#include <mutex>

namespace ucxl
{

class plan_table
{
public:
    static plan_table& instance();

    // The plan of an equal layout. Null if there is none; seldom also if another layout has the same hash.
    pack_plan_ptr find(const layout& wanted);
    // Keeps the plan, unless there is one of an equal layout already, and returns the one that is kept. Throws
    // std::bad_alloc.
    pack_plan_ptr share(std::shared_ptr<pack_plan> compiled);
    void remove(plans_by_content::iterator place) noexcept;

private:
    plan_table() = default;

    std::mutex _lock;
    plans_by_content _living;
};

} // namespace ucxl
