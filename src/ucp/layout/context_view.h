// What a UCP context has for windows: whether it can use them at all, and which of its domains make hardware keys. A
// context is asked once; the answer is kept until it is cleaned up. Asking takes some microseconds and makes no window.
//
// Not thread safe: the caller (map_state.h) holds its lock.
#pragma once

#include "sys/error.h"
#include "ucs/window/domain_query.h"

#include <cstdint>
#include <string>
#include <unordered_map>

#include <ucp/api/ucp.h>

namespace ucxl
{

// Without `copying` the context has no windows: UCP would take one for host memory there, and crash.
struct context_view : asked_domains {
    std::uint64_t number = 0; // of the question, which no other context has; 0: of no context
};

class context_views
{
public:
    // Null: of no context, which has nothing. The reference is good until the next call. Errors: those of
    // window_registry::reserve(), or what UCP says. Throws std::bad_alloc.
    result<const context_view*> of(ucp_context_h context);
    // The domain that copies closes, because its context is being cleaned up. The next context may have its address.
    void forget(const void* copying);

private:
    std::unordered_map<ucp_context_h, context_view> _known; // those that have windows
    context_view _other;                                    // of the last one that has none
    std::uint64_t _num_asked = 0;
};

// Why windows cannot be used in a context that has none.
std::string why_no_windows(ucp_context_h context);

} // namespace ucxl
