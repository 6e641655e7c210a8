#include "type_contents.h"

#include <array>
#include <utility>

namespace ucxl::mpi
{

namespace
{

struct envelope {
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    int combiner = MPI_COMBINER_NAMED;
};

std::optional<envelope> envelope_of(MPI_Datatype type)
{
    envelope read;
#if UCXL_LARGE_COUNTS
    if (PMPI_Type_get_envelope_c(type, &read.integers, &read.addresses, &read.counts, &read.types, &read.combiner) !=
        MPI_SUCCESS) {
        return std::nullopt;
    }
#else
    int integers = 0, addresses = 0, types = 0;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &read.combiner) != MPI_SUCCESS) {
        return std::nullopt;
    }
    read.integers  = integers;
    read.addresses = addresses;
    read.types     = types;
#endif
    return read;
}

#if UCXL_STANDARD_ABI
// An array is made with each of them.
listed_constants ask_for_constants()
{
    constexpr int num_dims = 2, num_integers = 3 + 4 * num_dims + 1;
    using by_dim = std::array<int, num_dims>;
    constexpr by_dim sizes{2, 2}, grid{1, 2}, kinds{MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK},
        arguments{MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    std::array<int, num_integers> listed{};
    MPI_Aint no_address = 0;
    MPI_Datatype array = MPI_DATATYPE_NULL, part = MPI_DATATYPE_NULL;
    listed_constants found;
    if (PMPI_Type_create_darray(2, 0, num_dims, sizes.data(), kinds.data(), arguments.data(), grid.data(), MPI_ORDER_C,
                                MPI_BYTE, &array) != MPI_SUCCESS) {
        return found;
    }
    if (PMPI_Type_get_contents(array, num_integers, 0, 1, listed.data(), &no_address, &part) == MPI_SUCCESS) {
        found = {.order_c          = listed.back(),
                 .none             = listed[3 + num_dims],
                 .block            = listed[3 + num_dims + 1],
                 .default_argument = listed[3 + 2 * num_dims]};
    }
    PMPI_Type_free(&array);
    return found;
}
#endif

} // namespace

const listed_constants& listed_constants::get()
{
#if UCXL_STANDARD_ABI
    static const listed_constants only = ask_for_constants();
#else
    static constexpr listed_constants only;
#endif
    return only;
}

bool is_named(int combiner)
{
    switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
        return true;
    default:
        return false;
    }
}

std::optional<int> combiner_of(MPI_Datatype type)
{
    const auto found = envelope_of(type);
    return found ? std::optional(found->combiner) : std::nullopt;
}

type_contents::type_contents(type_contents&& moved) noexcept
    : combiner(moved.combiner), integers(std::move(moved.integers)), addresses(std::move(moved.addresses)),
      types(std::exchange(moved.types, {}))
{
}

// MPI gives references to derived types, which have to be freed, and its own types, which must not be.
type_contents::~type_contents()
{
    for (MPI_Datatype& each : types) {
        const auto its_combiner = combiner_of(each);
        if (its_combiner && !is_named(*its_combiner)) {
            PMPI_Type_free(&each);
        }
    }
}

const char* name_of_combiner(int combiner)
{
    switch (combiner) {
    case MPI_COMBINER_DUP:
        return "dup";
    case MPI_COMBINER_CONTIGUOUS:
        return "contiguous";
    case MPI_COMBINER_VECTOR:
        return "vector";
    case MPI_COMBINER_HVECTOR:
        return "hvector";
    case MPI_COMBINER_INDEXED:
        return "indexed";
    case MPI_COMBINER_HINDEXED:
        return "hindexed";
    case MPI_COMBINER_INDEXED_BLOCK:
        return "indexed_block";
    case MPI_COMBINER_HINDEXED_BLOCK:
        return "hindexed_block";
    case MPI_COMBINER_STRUCT:
        return "struct";
    case MPI_COMBINER_SUBARRAY:
        return "subarray";
    case MPI_COMBINER_DARRAY:
        return "darray";
    case MPI_COMBINER_RESIZED:
        return "resized";
    default:
        return "other";
    }
}

std::optional<type_contents> type_contents::read(MPI_Datatype type)
{
    const auto sizes = envelope_of(type);
    if (!sizes) {
        return std::nullopt;
    }
    type_contents made;
    made.combiner = sizes->combiner;
    if (is_named(made.combiner)) {
        return made;
    }
#if UCXL_LARGE_COUNTS
    if (sizes->counts > 0) {
        return made.read_large(type, sizes->integers, sizes->addresses, sizes->counts, sizes->types)
                   ? std::optional(std::move(made))
                   : std::nullopt;
    }
#endif
    return made.read_small(type, static_cast<int>(sizes->integers), static_cast<int>(sizes->addresses),
                           static_cast<int>(sizes->types))
               ? std::optional(std::move(made))
               : std::nullopt;
}

bool type_contents::read_small(MPI_Datatype type, int num_integers, int num_addresses, int num_types)
{
    std::vector<int> small(static_cast<std::size_t>(num_integers) + 1); // never empty, for MPI checks the pointers
    std::vector<MPI_Aint> places(static_cast<std::size_t>(num_addresses) + 1);
    std::vector<MPI_Datatype> parts(static_cast<std::size_t>(num_types) + 1);
    if (PMPI_Type_get_contents(type, num_integers, num_addresses, num_types, small.data(), places.data(),
                               parts.data()) != MPI_SUCCESS) {
        return false;
    }
    parts.resize(static_cast<std::size_t>(num_types));
    types = std::move(parts);
    integers.assign(small.begin(), small.end() - 1);
    addresses.assign(places.begin(), places.end() - 1);
    return true;
}

#if UCXL_LARGE_COUNTS
bool type_contents::read_large(MPI_Datatype type, MPI_Count num_integers, MPI_Count num_addresses, MPI_Count num_counts,
                               MPI_Count num_types)
{
    std::vector<int> small(static_cast<std::size_t>(num_integers) + 1);
    std::vector<MPI_Aint> places(static_cast<std::size_t>(num_addresses) + 1);
    std::vector<MPI_Count> counts(static_cast<std::size_t>(num_counts) + 1);
    std::vector<MPI_Datatype> parts(static_cast<std::size_t>(num_types) + 1);
    if (PMPI_Type_get_contents_c(type, num_integers, num_addresses, num_counts, num_types, small.data(), places.data(),
                                 counts.data(), parts.data()) != MPI_SUCCESS) {
        return false;
    }
    parts.resize(static_cast<std::size_t>(num_types));
    types = std::move(parts);
    integers.assign(small.begin(), small.end() - 1);
    addresses.assign(places.begin(), places.end() - 1);
    counts.pop_back();
    return sort_counts(counts);
}

// The tables of MPI 4.1, section 5.1.13: the order of counts is that of the constructor's arguments.
bool type_contents::sort_counts(const std::vector<MPI_Count>& counts)
{
    const auto first = counts.begin();
    switch (combiner) {
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
        integers = counts;
        return true;
    case MPI_COMBINER_HVECTOR:
        if (counts.size() != 3) {
            return false;
        }
        integers.assign(first, first + 2);
        addresses.assign(first + 2, counts.end());
        return true;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT: {
        // How many parts there are, and for each a length and a place.
        const auto parts = static_cast<MPI_Count>(counts.size() / 2);
        if (counts.size() % 2 != 1 || counts[0] != parts) {
            return false;
        }
        integers.assign(first, first + 1 + parts);
        addresses.assign(first + 1 + parts, counts.end());
        return true;
    }
    case MPI_COMBINER_HINDEXED_BLOCK:
        if (counts.size() < 2) {
            return false;
        }
        integers.assign(first, first + 2);
        addresses.assign(first + 2, counts.end());
        return true;
    case MPI_COMBINER_SUBARRAY: { // ndims and order are small; sizes, subsizes and starts are counts
        if (integers.size() != 2) {
            return false;
        }
        const MPI_Count order = integers[1];
        integers.resize(1);
        integers.insert(integers.end(), counts.begin(), counts.end());
        integers.push_back(order);
        return true;
    }
    case MPI_COMBINER_DARRAY: // size, rank, ndims, then gsizes among the small ones
        if (integers.size() < 3) {
            return false;
        }
        integers.insert(integers.begin() + 3, counts.begin(), counts.end());
        return true;
    case MPI_COMBINER_RESIZED:
        addresses = counts;
        return true;
    default:
        return false;
    }
}
#endif

} // namespace ucxl::mpi
