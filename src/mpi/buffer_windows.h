// The windows that show buffers of one layout. Unused ones are kept, because programs send the same buffers again and
// again; the oldest one is bound to another buffer when one is needed. But who can copy a window is decided when it is
// mapped, so one over shared memory is not bound to other memory, nor the other way round.
//
// Thread safety: the caller's lock.
#pragma once

#include "type_layout.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ucxl::mpi
{

// A window over one buffer. The address is that of its first byte.
struct bound_window {
    void* base                  = nullptr;
    ucp_layout_window_h handle  = nullptr;
    void* address               = nullptr;
    bool is_shared              = false; // all of the memory, as one_pass.h means it, when the window was mapped
    bool is_direct              = false; // a peer on this host reaches the memory itself
    unsigned users              = 0;
    std::uint64_t last_use      = 0;
    std::uint64_t bytes_at_bind = 0; // what the CPU had moved through it when it was mapped
};

class buffer_windows
{
public:
    // A window over the base that is mapped already, or an unused one that is bound to it, or a new one, with one more
    // user. `use` is a number that grows. Null if none could be made. Throws std::bad_alloc.
    bound_window* take(void* base, const type_layout& layout, std::uint64_t use);
    // The window has one user less. Returns what the CPU moved through it if it ends.
    std::uint64_t give_back(bound_window& window);
    // Unmaps what nobody uses. Returns what the CPU moved through these.
    std::uint64_t unmap_unused();

private:
    bound_window* bind(void* base, const type_layout& layout);
    void end(const bound_window& window);

    std::vector<std::unique_ptr<bound_window>> _windows;
    std::uint64_t _moved_before = 0; // by the CPU, through windows that have ended, and not returned yet
};

} // namespace ucxl::mpi
