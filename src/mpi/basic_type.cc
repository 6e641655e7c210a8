#include "basic_type.h"

#include "type_contents.h"

#include <algorithm>
#include <utility>

namespace ucxl::mpi
{

namespace
{

// Packed elements of it are an array of it. Markers of bounds have no bytes.
bool has_no_gaps(MPI_Datatype type, MPI_Count& size)
{
    MPI_Count lb = 0, extent = 0;
    return PMPI_Type_size_x(type, &size) == MPI_SUCCESS && PMPI_Type_get_extent_x(type, &lb, &extent) == MPI_SUCCESS &&
           (size == 0 || (lb == 0 && extent == size));
}

class type_search
{
public:
    // False if another one than the one found is in it, or it consists of too many.
    bool look_at(MPI_Datatype type)
    {
        if (_depth >= max_type_nesting || ++_num_types > max_inner_types) {
            return false;
        }
        ++_depth;
        const bool is_one = look_inside(type);
        --_depth;
        return is_one;
    }

    MPI_Datatype found = MPI_DATATYPE_NULL;

private:
    bool look_inside(MPI_Datatype type)
    {
        const auto contents = type_contents::read(type);
        if (!contents) {
            return false;
        }
        if (is_named(contents->combiner)) {
            MPI_Count size = 0;
            if (!has_no_gaps(type, size)) {
                return false;
            }
            if (size > 0 && found == MPI_DATATYPE_NULL) {
                found = type;
            }
            return size == 0 || found == type;
        }
        MPI_Datatype last = MPI_DATATYPE_NULL; // a structure often has the same one many times
        return std::ranges::all_of(contents->types, [&](MPI_Datatype each) {
            return each == std::exchange(last, each) || look_at(each);
        });
    }

    unsigned _depth        = 0;
    std::size_t _num_types = 0;
};

} // namespace

MPI_Datatype basic_type_of(MPI_Datatype type)
{
    type_search search;
    return search.look_at(type) ? search.found : MPI_DATATYPE_NULL;
}

} // namespace ucxl::mpi
