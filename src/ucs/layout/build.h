// The functions that make layouts. Each checks its input against limits.h, normalises it, and computes bounds and hash.
// Errors name the argument, its index and the limit. Descriptors are copied.
#pragma once

#include "layout.h"
#include "sys/error.h"

namespace ucxl
{

// The thing that is repeated: a contiguous block of `length` bytes, or the layout `nested`, in which case `length` is
// ignored. The sources of a nested layout are added to the source of the part that holds the element.
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

// One source of an interleaved layout. `dims` enumerates its data elements, the last dimension fastest. Each cycle
// takes the next `repeat` elements of every source in turn. The last cycle of a source may be short; later cycles skip
// that source.
struct interleaved_part {
    std::uint32_t source = 0;
    std::int64_t offset  = 0; // bytes from the base address to the first data element
    element item;
    std::uint64_t repeat = 1; // >= 1
    std::span<const dim> dims;
};

// `count` elements, each at the extent of the element behind the one before (its length, if it is not nested).
result<layout_ptr> make_contig(std::uint64_t count, const element& item);
// N dimensions; dims[0] is outermost and varies slowest. Without dims: the element once.
result<layout_ptr> make_strided(const element& item, std::span<const dim> dims);
// The parts, in this order.
result<layout_ptr> make_iov(std::span<const iov_part> parts);
result<layout_ptr> make_interleaved(std::span<const interleaved_part> parts);
// The same bytes with a new lower bound and extent for one source. The largest extent of all sources is the distance
// between elements in make_contig and in datatypes of count > 1.
result<layout_ptr> resize(const layout& from, std::int64_t lb, std::int64_t extent, std::uint32_t source = 0);

} // namespace ucxl
