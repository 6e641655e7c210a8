// What the control groups of this process (cgroups(7), versions 1 and 2) let it have of memory. A group counts freed
// blocks that the heap keeps for the next ones, and kills a process for them that has room enough without.
//
// Example:
//     memory_limit limit;
//     if (limit.find("/proc/self/cgroup", "/sys/fs/cgroup") && limit.is_near()) give_freed_memory_back();
#pragma once

#include <cstddef>

#include <limits.h>

namespace ucxl::heap
{

class memory_limit
{
public:
    // Of the groups that `groups` lists as /proc/self/cgroup does, and those around them, looks for the one with the
    // lowest limit in the file system at `mounted`. False if there is none. A container may see its own groups only:
    // names that are not there are passed over.
    bool find(const char* groups, const char* mounted);

    // What follows is of a limit that was found. In bytes, as it was then.
    std::size_t bytes() const { return _bytes; }
    // Whether less than a quarter of the limit, as it is now, is left. Files that the group has read count as used, so
    // that may be so all the time.
    bool is_near() const;

private:
    struct names;

    void look_at_groups_up_from(const char* group, const char* mounted, const names& named);

    char _limit[PATH_MAX]{}, _usage[PATH_MAX]{}; // files of the group
    std::size_t _bytes = 0;
};

} // namespace ucxl::heap
