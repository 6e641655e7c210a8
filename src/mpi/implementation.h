// Which MPI is below: whether it is one that this library is for, and what one does and another one does not.
//
// The library for the handles of one MPI knows it when it is compiled. The one for the standard ABI asks MPI.
#pragma once

#include "mpi_functions.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ucxl::mpi
{

enum class implementation : unsigned char {
    openmpi,
    mpich,
    unknown // an MPI with the standard ABI, to which all is left
};

#if UCXL_STANDARD_ABI
// Asks MPI once, which answers also before it has started.
implementation implementation_below() noexcept;
#elif defined(OPEN_MPI)
constexpr implementation implementation_below() noexcept
{
    return implementation::openmpi;
}
#else
constexpr implementation implementation_below() noexcept
{
    return implementation::mpich;
}
#endif

// What MPI says of itself, in some lines; MPI need not have started. Empty if it says nothing.
class library_version
{
public:
    library_version() { PMPI_Get_library_version(_text, &_length); }
    std::string_view text() const { return {_text, static_cast<std::size_t>(_length)}; }

private:
    char _text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int _length                                = 0;
};

// The file name of this library, and what it is for.
const char* own_name() noexcept;
const char* own_handles() noexcept;
// Whether MPI has other handles than this library, so that no call could be passed on.
bool has_other_handles() noexcept;
// Where the handles of MPI's own datatypes are, both ends included. Some of its own may be outside; no other one is
// inside. Both ranges may be the same.
struct handle_range {
    std::uintptr_t first, last;

    bool has(std::uintptr_t handle) const { return handle - first <= last - first; }
};
using handle_ranges = std::array<handle_range, 2>;
handle_ranges own_type_handles() noexcept;
// Whether this is one of MPI's own datatypes that consist of numbers. MPI is not asked: a wrong handle is an error of
// the call and its window, not of a question in between, after which the handler of MPI_COMM_WORLD ends the program.
bool is_own_number(MPI_Datatype type) noexcept;
// Whether MPI ends the datatype of what MPI_Isendrecv and MPI_Isendrecv_replace send: before 4.3, MPICH gives it back
// once more than it took it.
bool isendrecv_ends_datatypes() noexcept;
// Null if MPI moves messages by UCX, otherwise what to say. After MPI has started.
const char* why_without_ucx() noexcept;

} // namespace ucxl::mpi
