// Contexts of a UCX in this process that is not the one that the library works with. The functions of UCX that the
// library calls must not get them.
#pragma once

#include <ucp/api/ucp.h>

#include <mutex>
#include <set>

namespace ucxl
{

class foreign_contexts
{
public:
    static foreign_contexts& instance()
    {
        static foreign_contexts& only = *new foreign_contexts; // never destroyed, as UCX's own objects
        return only;
    }

    // For every new context: one of ours may be where a foreign one was.
    void note(ucp_context_h context, bool is_foreign)
    {
        const std::lock_guard guard(_lock);
        if (is_foreign) {
            _contexts.insert(context);
        } else {
            _contexts.erase(context);
        }
    }

    bool contains(ucp_context_h context)
    {
        const std::lock_guard guard(_lock);
        return _contexts.contains(context);
    }

private:
    std::mutex _lock;
    std::set<ucp_context_h> _contexts;
};

} // namespace ucxl
