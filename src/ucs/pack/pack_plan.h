// A pack plan: a layout compiled for the CPU. It gathers any packed sub-range of the memory into contiguous bytes,
// scatters contiguous bytes back, or copies straight into the memory of another plan.
//
// compile() makes every choice that needs no address, such as the kernel of each loop; running only walks. Running
// makes one indirect call per run of blocks, never one per block of a long run. It takes no lock, allocates nothing,
// and divides only to find where a call begins and ends. New kernels go into kernels.h and kernel_bodies.inc, and
// compile() chooses them; callers and walking stay as they are.
//
// Example:
//     auto plan = pack_plan::compile(layout);                       // result<pack_plan_ptr>
//     std::byte* bases[] = {matrix};
//     (*plan)->gather(bases, 0, (*plan)->packed_length(), buffer);
//
// Thread safety: a plan never changes after compile(); any number of threads may run it. The caller keeps the memory
// alive, and does not read what is being written. Where blocks overlap, a scatter leaves the block that is last in
// packed order; MPI leaves it undefined.
#pragma once

#include "block_row.h"
#include "sys/error.h"
#include "ucs/layout/by_content.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace ucxl
{

class pack_plan;
using pack_plan_ptr    = std::shared_ptr<const pack_plan>;
using plans_by_content = std::multimap<const layout*, std::weak_ptr<const pack_plan>, by_content>;

// Base addresses by source: layout::num_sources() of them.
using base_list = std::span<std::byte* const>;

class pack_plan
{
public:
    // While a plan of an equal layout lives, this returns it. Errors: no_memory.
    static result<pack_plan_ptr> compile(layout_ptr layout);
    ~pack_plan();
    pack_plan(const pack_plan&)            = delete;
    pack_plan& operator=(const pack_plan&) = delete;

    const layout_ptr& source_layout() const { return _layout; }
    std::uint64_t packed_length() const { return _layout->packed_length(); }
    // Packed bytes that are better moved together, see tile.h; 0 for none.
    std::uint64_t tile_length() const { return _tile_length; }

    // Whether a long operation gains if different cores move ranges of its packed bytes: no structure that moves at
    // once, and hardly a line of the cache, is in several ranges, and short blocks do not lie far from each other.
    bool is_divisible() const;

    // All three assert offset + length <= packed_length(). Lengths and offsets are in packed bytes. If the range is a
    // part of a longer operation, `whole` is the length of that: as long operations do, it may pass the caches.
    void gather(base_list bases, std::uint64_t offset, std::uint64_t length, void* to, std::uint64_t whole = 0) const;
    void scatter(base_list bases, std::uint64_t offset, std::uint64_t length, const void* from,
                 std::uint64_t whole = 0) const;
    // Passes once over each memory: directly where blocks are long or alike, as they all are from a plan to itself at
    // equal offsets; otherwise through some KB of stack that stay in the first-level cache. The two memories must not
    // overlap.
    static void copy(const pack_plan& to, base_list to_bases, std::uint64_t to_offset, const pack_plan& from,
                     base_list from_bases, std::uint64_t from_offset, std::uint64_t length, std::uint64_t whole = 0);

    // The plan with these base addresses, if it is one row of equal blocks.
    block_row row_at(base_list bases) const;

    // Names the chosen kernels for people, outermost loop first: "8192 x copy(8) stride 65536".
    std::string describe() const;

private:
    friend class plan_table;

    struct program;

    pack_plan(layout_ptr layout, std::unique_ptr<const program> code);

    // From how many bytes on each goes past the caches, as far as that is known.
    std::uint64_t streamed_gather() const;
    std::uint64_t streamed_scatter() const;

    layout_ptr _layout;
    std::unique_ptr<const program> _program;
    std::uint64_t _tile_length;
    std::optional<plans_by_content::iterator> _place; // in plan_table, if shared
};

} // namespace ucxl
