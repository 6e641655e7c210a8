// The cache lines of some memory that a layout touches, each once, in the order in which the packed bytes visit them
// first: what no way to move it can do without.
//
//     footprint column(*of.type, of.extent, 16), packed(of.length, 16);
//     line_plan(packed.all(), column.all()).run(to_line, from_line, copy_kind::plain);
//
// Nothing but lines is moved: each line of the one side is loaded once, each line of the other one stored once. Where
// one side has more lines than the other one, what is left of it is only loaded, or only stored. Two equal footprints
// therefore end with the same bytes; else the bytes mean nothing. std only.
#pragma once

#include "bench/common/type_tree.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ucxl::bench
{

inline constexpr std::size_t line_length = 64;

// Where line 0 of some memory begins, and where in it that memory begins.
template <typename Byte>
Byte* first_line(Byte* memory)
{
    return memory - reinterpret_cast<std::uintptr_t>(memory) % line_length;
}

inline std::size_t shift_of(const std::byte* memory)
{
    return reinterpret_cast<std::uintptr_t>(memory) % line_length;
}

struct line_run {
    std::size_t first, count;
    bool whole; // every byte of these lines belongs to the layout
};

class footprint
{
public:
    footprint() = default;
    // Memory of `extent` bytes, whose first byte is the byte `shift` of line 0. Throws std::out_of_range when the type
    // reaches beyond it.
    footprint(const type_tree& type, std::size_t extent, std::size_t shift);
    // Contiguous.
    footprint(std::size_t length, std::size_t shift);

    std::size_t num_lines() const;
    std::span<const line_run> all() const { return _runs; }
    // The same lines in so many parts, each as long as the others but for one line.
    std::vector<std::vector<line_run>> divide(std::size_t parts) const;

private:
    std::vector<line_run> _runs;
};

// streaming: past the caches, but for lines that must be read because not all of their bytes change.
enum class copy_kind { plain, streaming };

// What is to be done for two lists of runs, worked out before: a regular layout is one step, however many runs it has.
class line_plan
{
public:
    line_plan() = default;
    line_plan(std::span<const line_run> to, std::span<const line_run> from);

    void run(std::byte* to_line, const std::byte* from_line, copy_kind kind) const;

private:
    // So many times the same, one after the other, at these distances. Numbers of lines.
    struct step {
        std::ptrdiff_t to, from;
        std::size_t lines;
        std::ptrdiff_t times, to_stride, from_stride;
        bool whole;
    };

    static void append(std::vector<step>& steps, const step& more);
    static void copy(const step& one, std::byte* to_line, const std::byte* from_line, copy_kind kind);

    std::vector<step> _copies, _loads, _stores;
};

} // namespace ucxl::bench
