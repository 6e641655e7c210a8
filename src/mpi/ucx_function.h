// The functions of UCX that this library stands before.
#pragma once

#include "sys/search_order.h"

#include <atomic>

namespace ucxl::mpi
{

// UCX's own one, which the code at `caller` would have called. Null in a process without UCX.
template <typename Function>
Function* ucx_function(Function& own, const char* name, const void* caller)
{
    return reinterpret_cast<Function*>(function_behind(reinterpret_cast<const void*>(&own), name, caller));
}

// The same for functions that are called again and again from one place: it is remembered for the first caller.
template <typename Function>
class kept_ucx_function
{
public:
    Function* get(Function& own, const char* name, const void* caller)
    {
        if (_caller.load(std::memory_order_acquire) == caller) [[likely]] {
            return _found;
        }
        Function* const found = ucx_function(own, name, caller);
        if (found != nullptr && !_is_claimed.test_and_set()) {
            _found = found;
            _caller.store(caller, std::memory_order_release);
        }
        return found;
    }

private:
    std::atomic_flag _is_claimed;
    Function* _found = nullptr;
    std::atomic<const void*> _caller{nullptr};
};

} // namespace ucxl::mpi
