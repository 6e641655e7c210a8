// Putting layouts of datatypes together: in a list, or one repeated at a stride. Nothing here asks MPI.
#pragma once

#include "type_layout.h"

#include <vector>

namespace ucxl::mpi
{

// The product or sum, or a number beyond every limit if that is too large.
MPI_Count product(MPI_Count a, MPI_Count b);
MPI_Count sum(MPI_Count a, MPI_Count b);

// `count` of them, each `stride` bytes after the one before.
type_layout_result strided(const type_layout_ptr& child, MPI_Count count, MPI_Count stride);

// Layouts at offsets, in packed order. Blocks that touch become one.
class layout_parts
{
public:
    void add(MPI_Count offset, const type_layout_ptr& layout);
    void add_block(MPI_Count offset, MPI_Count length);
    type_layout_result together() const;

private:
    struct part {
        MPI_Count offset; // of its first byte in memory
        MPI_Count length; // of a block; ignored with a layout
        type_layout_ptr layout;

        MPI_Count end() const { return offset + (layout == nullptr ? length : layout->span); }
        MPI_Count size() const { return layout == nullptr ? length : layout->size; }
    };

    std::vector<part> _parts;
};

} // namespace ucxl::mpi
