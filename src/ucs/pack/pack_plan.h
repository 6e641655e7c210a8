// A pack plan: a layout compiled for the CPU. It gathers any packed sub-range of the described memory into contiguous
// bytes, scatters contiguous bytes back, or copies from one plan's memory straight into another's.
//
// The seam: compile() chooses everything that can be chosen without an address (which kernel for which loop); running
// only walks. There is one indirect call per run of blocks, never per block where runs are long; no lock, no
// allocation, and divisions only to find where a call begins and ends. Faster kernels are added in kernels.h and
// kernel_bodies.inc and chosen in compile(); callers and walking do not change.
//
// Example:
//     auto plan = pack_plan::compile(layout);                       // result<pack_plan_ptr>
//     std::byte* bases[] = {matrix};
//     (*plan)->gather(bases, 0, (*plan)->packed_length(), buffer);
//
// Thread safety: a plan never changes after compile(); any number of threads may run it. The caller sees to it that the
// memory is there, and that what is written is not also read: with overlapping blocks a scatter leaves the block that
// comes last in packed order, as MPI leaves it undefined.
#pragma once

#include "sys/error.h"
#include "ucs/layout/layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ucxl
{

class pack_plan;
using pack_plan_ptr = std::shared_ptr<const pack_plan>;

// Base addresses by source; as many as layout::num_sources().
using base_list = std::span<std::byte* const>;

class pack_plan
{
public:
    // Errors: no_memory.
    static result<pack_plan_ptr> compile(layout_ptr of);
    ~pack_plan();
    pack_plan(const pack_plan&)            = delete;
    pack_plan& operator=(const pack_plan&) = delete;

    const layout_ptr& source_layout() const { return _layout; }
    std::uint64_t packed_length() const { return _layout->packed_length(); }

    // All three: offset + length <= packed_length() (asserted). Lengths and offsets are in packed bytes.
    void gather(base_list bases, std::uint64_t offset, std::uint64_t length, void* to) const;
    void scatter(base_list bases, std::uint64_t offset, std::uint64_t length, const void* from) const;
    // One pass over each memory: straight where blocks are large or alike, otherwise through some KB of stack, which
    // stay in the first level cache. The two memories must not overlap.
    static void copy(const pack_plan& to, base_list to_bases, std::uint64_t to_offset, const pack_plan& from,
                     base_list from_bases, std::uint64_t from_offset, std::uint64_t length);

    // The kernels chosen, outermost loop first, for people: "8192 x copy(8) stride 65536".
    std::string describe() const;

private:
    struct program;

    pack_plan(layout_ptr of, std::unique_ptr<const program> code);

    layout_ptr _layout;
    std::unique_ptr<const program> _program;
};

} // namespace ucxl
