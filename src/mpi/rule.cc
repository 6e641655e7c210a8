#include "rule.h"

#include "mpi_functions.h"
#include "settings.h"

namespace ucxl::mpi
{

namespace
{

#ifdef OPEN_MPI
constexpr std::size_t measured_min_size = 2048;
#else
constexpr std::size_t measured_min_size = 512;
#endif

} // namespace

const char* why_not_worth(const traffic& moved, means by)
{
    const settings& chosen = settings::get();
    if (moved.num_blocks <= 1) {
        return "contiguous";
    }
    if (moved.length < chosen.min_size.value_or(chosen.takes_all_types ? 0 : measured_min_size)) {
        return "short";
    }
    static_cast<void>(by);
    return nullptr;
}

} // namespace ucxl::mpi
