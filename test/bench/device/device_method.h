// The ways to move the bytes of a pattern from the first process to the second: windows with hardware keys, and what
// stock UCX has: lists of blocks, a datatype that packs, and a put for every block.
#pragma once

#include "bench/common/ucp_pair.h"
#include "examples/demo/payload.h"

#include <memory>
#include <string>
#include <vector>

namespace ucxl::bench
{

class method
{
public:
    virtual ~method() = default;

    // What both processes do for a transfer, at the same time. Returns a request for ucp_pair::wait_for(), or nothing:
    // then the second process has no part in it.
    virtual ucs_status_ptr_t start() = 0;
    virtual bool is_put() const { return false; }
    // Bytes that the CPU of this process moved through windows so far.
    virtual std::uint64_t window_bytes() const { return 0; }
};

struct method_parts {
    ucp_pair& pair;
    bool is_first;
    const examples::pattern& pattern;
    examples::memory_set& memory; // of the first process to send, of the second to receive
};

// Both processes make the same methods in the same order. Throw std::runtime_error.
std::unique_ptr<method> window_message(const method_parts& parts);
std::unique_ptr<method> window_put(const method_parts& parts);
std::unique_ptr<method> list_message(const method_parts& parts);   // UCP_DATATYPE_IOV
std::unique_ptr<method> packed_message(const method_parts& parts); // a generic datatype
std::unique_ptr<method> block_puts(const method_parts& parts);

// A window of this process over the memory.
ucx_layout::window make_window(ucp_context_h context, const examples::pattern_side& side, examples::memory_set& memory);

} // namespace ucxl::bench
