// The memory types that windows have for UCX.
//
// A window that network cards may register is memory of type RDMA. A window that they must never register is memory of
// another type: one for those that are copied through a buffer (staged), and one for those that a peer of this host can
// copy in one pass (direct), because UCX chooses how to send by the type. UCX has none to spare, so they are types of
// GPUs that this process cannot have: a process that served such memory itself would take windows for it. They are no
// types that the CPU could access, because UCX would then read windows like host memory.
//
// Peers may have made another choice. So a process serves every type that such a window may have, except those of GPUs
// of its own.
//
// Example: if (const auto staged = types_of_windows().staged) { reserve_part_for(*staged); }
#pragma once

#include <ucs/memory/memory_type.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::abi
{

// UCX's older protocols send memory of GPUs in fragments of their own, for which they need a transport with remote
// access; without one they end the process (rndv.c). So there is no staged type with them.
struct window_types {
    std::optional<ucs_memory_type_t> staged; // none: every type is taken
    std::optional<ucs_memory_type_t> direct; // none without a staged one, or if all others are taken
    std::uint64_t served;                    // UCS_BIT(type) of all windows, here and at peers
    // What a memory domain has to detect: the windows of this process.
    std::uint64_t own() const;
    bool serves(unsigned type) const { return type < 64 && (served >> type & 1) != 0; }
};

// What decides it.
struct gpu_facts {
    unsigned num_memory_types;           // that UCX knows
    std::vector<std::string> components; // of UCX, those with memory domains
    bool cards_register_rocm;            // UCX's network cards take memory of type ROCM
    bool cards_register_cuda;            // the same, CUDA
    bool old_protocols;                  // UCX_PROTO_ENABLE=n
    bool cards_register_ze = false;      // as above, ZE_DEVICE
    // Names between commas (UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES): of which UCP registers whole allocations.
    std::string types_registered_whole{};
};

window_types choose_window_types(const gpu_facts& facts);

// The choice for the UCX that is attached, made at the first call and logged (debug). That call loads UCX's modules.
// Only RDMA while none is attached. Any thread; not while a module of UCX is being loaded.
const window_types& types_of_windows();

} // namespace ucxl::abi
