// The layout that an MPI datatype describes.
//
// A layout's offsets are limited to 2^46 bytes, but a datatype for MPI_BOTTOM has whole addresses. So the layout begins
// at its lowest byte, and `origin` says where that byte is from the buffer:
//
//     const auto column = type_layout_of(type);
//     base of the window = buffer + column->origin
#pragma once

#include "layout_ptr.h"
#include "mpi_functions.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>

namespace ucxl::mpi
{

struct type_layout {
    layout_ptr layout;           // null: no bytes
    MPI_Count origin    = 0;     // the true lower bound
    MPI_Count span      = 0;     // the true extent
    MPI_Count size      = 0;     // bytes, packed
    MPI_Count extent    = 0;     // from one element to the next; may be negative
    bool is_block       = false; // all bytes in one block, in the order of memory
    unsigned depth      = 0;     // upper bound of the loops
    std::size_t entries = 0;     // upper bound of the list entries
};

using type_layout_ptr = std::shared_ptr<const type_layout>;

// Of a window over the buffer. A buffer of MPI_BOTTOM is no object from which one may count.
inline void* base_of(const void* buffer, const type_layout& layout)
{
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                   static_cast<std::uintptr_t>(layout.origin));
}

// Why a datatype is no layout.
using type_layout_result = std::expected<type_layout_ptr, const char*>;

// Agrees with what MPI says of size and bounds, or fails. May throw std::bad_alloc.
type_layout_result type_layout_of(MPI_Datatype type);
// `count` of them, each at the extent of the one before. As type_layout_of().
type_layout_result repeated(const type_layout_ptr& type, MPI_Count count);

} // namespace ucxl::mpi
