#include "distributed_array.h"

#include "layout_parts.h"
#include "type_contents.h"

namespace ucxl::mpi
{

namespace
{

struct dimension {
    MPI_Count global;     // elements of the whole array
    MPI_Count block;      // elements of a block
    MPI_Count num_parts;  // processes
    MPI_Count coordinate; // of this process
};

// cyclic() of MPI 4.1, section 5.1.4. The other two distributions are cases of it.
type_layout_result cyclic(const dimension& dim, const type_layout_ptr& child, MPI_Count extent)
{
    const MPI_Count num_blocks = (dim.global - 1) / dim.block + 1;
    MPI_Count own              = num_blocks / dim.num_parts;
    if (dim.coordinate < num_blocks % dim.num_parts) {
        ++own;
    }
    const bool has_last    = own > 0 && dim.coordinate == (num_blocks - 1) % dim.num_parts;
    const MPI_Count rest   = (dim.global - 1) % dim.block + 1;
    const MPI_Count whole  = has_last && rest != dim.block ? own - 1 : own;
    const MPI_Count start  = product(product(dim.coordinate, dim.block), extent);
    const MPI_Count stride = product(product(dim.num_parts, dim.block), extent);
    layout_parts parts;
    const auto block = strided(child, dim.block, extent);
    if (!block) {
        return block;
    }
    const auto blocks = strided(*block, whole, stride);
    if (!blocks) {
        return blocks;
    }
    parts.add(start, *blocks);
    if (whole < own) {
        const auto last = strided(child, rest, extent);
        if (!last) {
            return last;
        }
        parts.add(sum(start, product(whole, stride)), *last);
    }
    return parts.together();
}

} // namespace

type_layout_result distributed_array(const std::vector<MPI_Count>& integers, const type_layout_ptr& child)
{
    const listed_constants& constants = listed_constants::get();
    if (integers.at(2) < 1 || integers.at(2) > static_cast<MPI_Count>(integers.size())) {
        return std::unexpected("a distributed array of no dimensions");
    }
    const auto num_dims = static_cast<std::size_t>(integers[2]);
    const auto value    = [&](std::size_t array, std::size_t dim) { return integers.at(3 + array * num_dims + dim); };
    std::vector<dimension> dims(num_dims);
    MPI_Count rank = integers[1], processes = integers[0];
    if (rank < 0 || rank >= processes) {
        return std::unexpected("a distributed array without a part for the process");
    }
    for (std::size_t i = 0; i < num_dims; ++i) { // the order of ranks is that of C for both orders of arrays
        const MPI_Count distribution = value(1, i), argument = value(2, i);
        dimension& dim = dims[i];
        dim.global     = value(0, i);
        dim.num_parts  = value(3, i);
        if (dim.global <= 0) {
            return std::unexpected("a distributed array of no elements");
        }
        if (dim.num_parts <= 0 || processes < dim.num_parts) {
            return std::unexpected("a distributed array on no processes");
        }
        processes /= dim.num_parts;
        dim.coordinate = rank / processes;
        rank %= processes;
        if (distribution == constants.none) {
            dim.block      = dim.global;
            dim.num_parts  = 1;
            dim.coordinate = 0;
        } else if (argument != constants.default_argument) {
            dim.block = argument;
        } else {
            dim.block = distribution == constants.block ? (dim.global - 1) / dim.num_parts + 1 : 1;
        }
        if (dim.block <= 0) {
            return std::unexpected("a distributed array of empty blocks");
        }
    }
    const bool is_c      = integers.at(3 + 4 * num_dims) == constants.order_c;
    type_layout_ptr made = child;
    MPI_Count extent     = child->extent;
    for (std::size_t i = 0; i < num_dims; ++i) { // from the fastest dimension to the slowest
        const dimension& dim = dims[is_c ? num_dims - 1 - i : i];
        const auto next      = cyclic(dim, made, extent);
        if (!next) {
            return next;
        }
        made   = *next;
        extent = product(extent, dim.global);
    }
    return made;
}

} // namespace ucxl::mpi
