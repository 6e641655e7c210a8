#include "rule.h"

#include "implementation.h"
#include "library.h"
#include "settings.h"

namespace ucxl::mpi
{

namespace
{

std::size_t measured_min_size()
{
    return implementation_below() == implementation::openmpi ? 2048 : 1024;
}

// Numbers of 8 bytes that are closer than lines of the cache. Its loop for them is as good as any.
bool is_fast_in_openmpi(const traffic& moved)
{
    return !moved.is_nested() && !moved.is_list() && moved.mean_block() >= 8 && moved.mean_block() < 32 &&
           moved.mean_distance() < 64;
}

// Windows instead of layouts: its engine is as fast with numbers one by one, with long blocks, and in short messages.
bool is_fast_in_openmpi_beside_windows(const traffic& moved)
{
    constexpr std::size_t one_piece = 8192;
    if (moved.is_nested()) {
        return false;
    }
    if (moved.is_list()) {
        return moved.length < 2 * one_piece || moved.mean_block() > 128;
    }
    return moved.mean_block() < 32 || moved.length < one_piece || moved.mean_block() > 128;
}

// MPICH packs short messages of numbers that are pages apart as fast as the memory gives them.
bool is_fast_in_mpich(const traffic& moved)
{
    return moved.length <= 8192 && moved.mean_block() < 10 && moved.mean_distance() >= 2048;
}

bool is_fast_in_mpi(const traffic& moved, means by)
{
    if (implementation_below() != implementation::openmpi) {
        return is_fast_in_mpich(moved);
    }
    return by == means::layout ? is_fast_in_openmpi(moved) : is_fast_in_openmpi_beside_windows(moved);
}

} // namespace

const char* why_not_worth(const traffic& moved, means by)
{
    const settings& chosen = settings::get();
    if (by == means::layout) { // also of a message with one block, because others of the datatype may have more
        return !chosen.takes_all_types && is_fast_in_mpi(moved, by) ? "as fast in MPI" : nullptr;
    }
    if (moved.num_blocks <= 1) {
        return "contiguous";
    }
    if (moved.length < chosen.min_size.value_or(chosen.takes_all_types ? 0 : measured_min_size())) {
        return "short";
    }
    // A card that carries windows leaves nothing to be copied.
    if (by == means::window && !chosen.takes_all_types && !library::has_cards() && is_fast_in_mpi(moved, by)) {
        return "as fast in MPI";
    }
    return nullptr;
}

} // namespace ucxl::mpi
