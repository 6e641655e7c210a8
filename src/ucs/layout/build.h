// The ways to make a layout. Each builder checks its input against limits.h, normalises, and computes bounds and hash.
// Errors name the argument, its index and the limit. Descriptors are copied; nothing is kept.
#pragma once

#include "layout.h"
#include "sys/error.h"

namespace ucxl
{

// What is repeated: a contiguous block of `length` bytes, or, when `nested` is set (then length is ignored), a layout.
// Sources of a nested layout are added to the source given beside the element.
struct element {
    std::uint64_t length = 0;
    layout_ptr nested    = nullptr;
};

struct dim {
    std::uint64_t count; // 0 makes the layout empty
    std::int64_t stride; // bytes, may be negative or 0
};

struct iov_part {
    std::uint32_t source = 0;
    std::int64_t offset  = 0; // bytes from the base address of the source
    element item;
};

// One source of an interleaved layout (mission.md S1). Its datums are enumerated by dims, the last one fastest;
// every cycle takes the next `repeat` of them. A source that has run out is skipped in later cycles; the last cycle of
// a source may be short.
struct interleaved_part {
    std::uint32_t source = 0;
    std::int64_t offset  = 0; // bytes from the base address to the first datum
    element item;
    std::uint64_t repeat = 1; // >= 1
    std::span<const dim> dims;
};

// `count` elements, one after the other at the distance of the element's extent (of its length if not nested).
result<layout_ptr> make_contig(std::uint64_t count, const element& item);
// N dimensions, dims[0] outermost (varies slowest); no dims: the element once.
result<layout_ptr> make_strided(const element& item, std::span<const dim> dims);
// Parts in the order given.
result<layout_ptr> make_iov(std::span<const iov_part> parts);
result<layout_ptr> make_interleaved(std::span<const interleaved_part> parts);
// The same bytes with another lower bound and extent of one source (and so, mostly, another distance in make_contig and
// in datatypes of count > 1: that is the largest extent of all sources).
result<layout_ptr> resize(const layout& from, std::int64_t lb, std::int64_t extent, std::uint32_t source = 0);

} // namespace ucxl
