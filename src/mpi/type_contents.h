// How a datatype was made: the arguments of its constructor, as MPI_Type_get_contents returns them.
//
// Constructors with large counts (MPI_Type_vector_c and so on) return counts in another array. Here both forms look
// like the small one: `integers` and `addresses` are in the order that MPI 4.1, section 5.1.13, lists for it.
#pragma once

#include "mpi_functions.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace ucxl::mpi
{

class type_contents
{
public:
    // Returns none if MPI does not tell, or not in a form known here.
    static std::optional<type_contents> read(MPI_Datatype type);
    ~type_contents();
    type_contents(type_contents&& moved) noexcept;
    type_contents(const type_contents&)            = delete;
    type_contents& operator=(const type_contents&) = delete;
    type_contents& operator=(type_contents&&)      = delete;

    int combiner = MPI_COMBINER_NAMED;
    std::vector<MPI_Count> integers;
    std::vector<MPI_Count> addresses;
    std::vector<MPI_Datatype> types; // valid during the life of this object

private:
    type_contents() = default;
    bool read_small(MPI_Datatype type, int num_integers, int num_addresses, int num_types);
#if UCXL_LARGE_COUNTS
    bool read_large(MPI_Datatype type, MPI_Count num_integers, MPI_Count num_addresses, MPI_Count num_counts,
                    MPI_Count num_types);
    bool sort_counts(const std::vector<MPI_Count>& counts);
#endif
};

// What `integers` of subarrays and distributed arrays have for the constants of MPI. Open MPI 6.0.0~rc2 lists numbers
// of its own where the standard ABI has others, so an MPI with that is asked for them once.
struct listed_constants {
    MPI_Count order_c          = MPI_ORDER_C;
    MPI_Count none             = MPI_DISTRIBUTE_NONE;
    MPI_Count block            = MPI_DISTRIBUTE_BLOCK;
    MPI_Count default_argument = MPI_DISTRIBUTE_DFLT_DARG;

    static const listed_constants& get();
};

// A datatype is left to MPI if datatypes are nested deeper in it, or it consists of more of them.
inline constexpr unsigned max_type_nesting   = 200;
inline constexpr std::size_t max_inner_types = 100000;

// Whether a datatype of this combiner is one of MPI's own, which has no contents and is not freed.
bool is_named(int combiner);
// As in the names of the constructors, "vector" of MPI_Type_vector.
const char* name_of_combiner(int combiner);
// The combiner of a datatype; none if MPI does not tell.
std::optional<int> combiner_of(MPI_Datatype type);

} // namespace ucxl::mpi
