// The target that is an MPI, in a program of its own.
#include "replay.h"

extern "C" int fuzz_mpi_types(const std::uint8_t* data, std::size_t size);

namespace ucxl::test
{
namespace
{

constexpr replayed_target targets[] = {{"mpi_types", fuzz_mpi_types, 3000}};

UCXL_REPLAY(targets);

} // namespace
} // namespace ucxl::test
