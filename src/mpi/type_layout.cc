#include "type_layout.h"

#include "distributed_array.h"
#include "layout_parts.h"
#include "type_contents.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <stdexcept>
#include <utility>

namespace ucxl::mpi
{

namespace
{

// Turns a tree of datatypes into layouts, each handle once.
//
// The contents of all datatypes are kept to the end: Open MPI returns copies of the inner datatypes, and would give the
// handle of one that was freed to the next one.
class type_converter
{
public:
    type_layout_result convert(MPI_Datatype type)
    {
        if (const auto known = _known.find(type); known != _known.end()) {
            return known->second;
        }
        if (++_depth > max_type_nesting) {
            return std::unexpected("it is nested too deeply");
        }
        auto made = convert_new(type);
        --_depth;
        if (made) {
            _known.emplace(type, *made);
        }
        return made;
    }

private:
    type_layout_result convert_new(MPI_Datatype type)
    {
        auto read = type_contents::read(type);
        if (!read) {
            return std::unexpected("MPI does not tell how it was made");
        }
        if (_contents.size() >= max_inner_types) {
            return std::unexpected("it consists of too many datatypes");
        }
        const type_contents& contents = _contents.emplace_back(std::move(*read));
        auto made                     = is_named(contents.combiner) ? named(type) : derived(contents);
        return made ? checked(type, **made) : made;
    }

    // MPI's own answers are the judge of what was understood.
    static type_layout_result checked(MPI_Datatype type, const type_layout& made)
    {
        MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
        PMPI_Type_size_x(type, &size);
        PMPI_Type_get_extent_x(type, &lb, &extent);
        PMPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
        if (size != made.size || (size > 0 && (true_lb != made.origin || true_extent != made.span))) {
            return std::unexpected("MPI gives it another size or other bounds");
        }
        auto result    = std::make_shared<type_layout>(made);
        result->extent = extent;
        return result;
    }

    static type_layout_result named(MPI_Datatype type)
    {
        MPI_Count size = 0, true_lb = 0, true_extent = 0;
        PMPI_Type_size_x(type, &size);
        PMPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
        layout_parts parts;
        if (type == MPI_SHORT_INT) { // the one pair type with a gap between its two
            struct pair {
                short value;
                int index;
            };
            parts.add_block(0, sizeof(short));
            parts.add_block(offsetof(pair, index), sizeof(int));
        } else if (size == true_extent) {
            parts.add_block(true_lb, size);
        } else if (size > 0) {
            return std::unexpected("a type of MPI has gaps that are unknown here");
        }
        return parts.together();
    }

    type_layout_result derived(const type_contents& contents)
    {
        switch (contents.combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return convert(contents.types.at(0));
        case MPI_COMBINER_STRUCT:
            return structure(contents);
        default:
            break;
        }
        const auto child = convert(contents.types.at(0));
        return child ? of_child(contents, *child) : child;
    }

    static type_layout_result of_child(const type_contents& contents, const type_layout_ptr& child)
    {
        const auto& integers  = contents.integers;
        const auto& addresses = contents.addresses;
        switch (contents.combiner) {
        case MPI_COMBINER_CONTIGUOUS:
            return repeated(child, integers.at(0));
        case MPI_COMBINER_VECTOR:
            return vector(child, integers.at(0), integers.at(1), product(integers.at(2), child->extent));
        case MPI_COMBINER_HVECTOR:
            return vector(child, integers.at(0), integers.at(1), addresses.at(0));
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
            return list(contents, child);
        case MPI_COMBINER_SUBARRAY:
            return subarray(integers, child);
        case MPI_COMBINER_DARRAY:
            return distributed_array(integers, child);
        default:
            return std::unexpected("it was made by a function that is unknown here");
        }
    }

    static type_layout_result vector(const type_layout_ptr& child, MPI_Count count, MPI_Count length, MPI_Count stride)
    {
        const auto block = repeated(child, length);
        return block ? strided(*block, count, stride) : block;
    }

    static type_layout_result list(const type_contents& contents, const type_layout_ptr& child)
    {
        const auto& integers = contents.integers;
        const auto count     = static_cast<std::size_t>(integers.at(0));
        const bool is_equal =
            contents.combiner == MPI_COMBINER_INDEXED_BLOCK || contents.combiner == MPI_COMBINER_HINDEXED_BLOCK;
        const bool is_bytes =
            contents.combiner == MPI_COMBINER_HINDEXED || contents.combiner == MPI_COMBINER_HINDEXED_BLOCK;
        const std::size_t places = is_equal ? 2 : 1 + count; // in `integers`
        std::map<MPI_Count, type_layout_ptr> blocks;         // by their length
        layout_parts parts;
        for (std::size_t i = 0; i < count; ++i) {
            const MPI_Count length = integers.at(is_equal ? 1 : 1 + i);
            const MPI_Count offset =
                is_bytes ? contents.addresses.at(i) : product(integers.at(places + i), child->extent);
            auto& block = blocks[length];
            if (block == nullptr) {
                const auto made = repeated(child, length);
                if (!made) {
                    return made;
                }
                block = *made;
            }
            parts.add(offset, block);
        }
        return parts.together();
    }

    type_layout_result structure(const type_contents& contents)
    {
        const auto count = static_cast<std::size_t>(contents.integers.at(0));
        layout_parts parts;
        for (std::size_t i = 0; i < count; ++i) {
            const auto child = convert(contents.types.at(i));
            if (!child) {
                return child;
            }
            const auto block = repeated(*child, contents.integers.at(1 + i));
            if (!block) {
                return block;
            }
            parts.add(contents.addresses.at(i), *block);
        }
        return parts.together();
    }

    // Integers: ndims, sizes, subsizes, starts, order.
    static type_layout_result subarray(const std::vector<MPI_Count>& integers, const type_layout_ptr& child)
    {
        const auto num_dims  = static_cast<std::size_t>(integers.at(0));
        const bool is_c      = integers.at(1 + 3 * num_dims) == listed_constants::get().order_c;
        type_layout_ptr made = child;
        MPI_Count stride     = child->extent;
        MPI_Count start      = 0;
        for (std::size_t i = 0; i < num_dims; ++i) { // from the fastest dimension to the slowest
            const std::size_t dim = is_c ? num_dims - 1 - i : i;
            const auto rows       = strided(made, integers.at(1 + num_dims + dim), stride);
            if (!rows) {
                return rows;
            }
            made = *rows;
            start = sum(start, product(integers.at(1 + 2 * num_dims + dim), stride));
            stride = product(stride, integers.at(1 + dim));
        }
        layout_parts parts;
        parts.add(start, made);
        return parts.together();
    }

    std::list<type_contents> _contents;
    std::map<MPI_Datatype, type_layout_ptr> _known;
    unsigned _depth = 0;
};

} // namespace

type_layout_result type_layout_of(MPI_Datatype type)
{
    try {
        return type_converter().convert(type);
    } catch (const std::out_of_range&) {
        return std::unexpected("MPI lists fewer arguments than expected");
    }
}

type_layout_result repeated(const type_layout_ptr& type, MPI_Count count)
{
    return count == 1 ? type_layout_result(type) : strided(type, count, type->extent);
}

} // namespace ucxl::mpi
