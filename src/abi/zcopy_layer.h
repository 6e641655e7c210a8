// What stands before the zero-copy operations of a stock component's transports, for memory that a transport's device
// cannot reach: an operation with such memory is run with other memory.
//
// Example: cover_transports(*find_component("ib"), {.is_needed = has_unreachable, .run = run_with_copies});
#pragma once

#include "uct.h"

#include <functional>
#include <span>

namespace ucxl::abi
{

// A put, get or active message, as its caller asked for it.
struct zcopy_call {
    std::span<const uct_iov_t> parts;
    bool is_read;                 // a get, which writes into the parts
    uct_completion_t* completion; // null: the caller does not want to know
    // The stock operation with these parts and this completion.
    const std::function<ucs_status_t(std::span<const uct_iov_t>, uct_completion_t*)>& stock;
};

struct zcopy_layer {
    // Asked for every operation. Must not throw.
    bool (*is_needed)(std::span<const uct_iov_t> parts) = nullptr;
    // Returns what the operation of UCT would return. May throw std::bad_alloc.
    ucs_status_t (*run)(const zcopy_call& call) = nullptr;
};

// Puts the layer before all transports that the component has by now, whose interfaces are opened later. Transports
// that have it already keep it. There is one layer.
void cover_transports(uct_component& component, const zcopy_layer& layer);

} // namespace ucxl::abi
