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

// What takes Open MPI's engine long are records, whose blocks differ, lists, and columns, of which it copies one after
// the other. Numbers side by side it copies as fast as any, and long blocks, too: a window for these is no slower only
// in messages of one piece.
bool is_fast_in_openmpi(const traffic& moved)
{
    constexpr std::size_t one_piece = 32768;
    if (moved.is_nested()) {
        return false;
    }
    if (moved.is_list()) {
        return moved.length < 16384 || moved.mean_block() > 128;
    }
    if (moved.mean_block() < 32) {
        return moved.length < 16384 || moved.mean_distance() < 64;
    }
    if (moved.mean_block() <= 64 && moved.mean_distance() < 1024) {
        return moved.length < 4096;
    }
    return moved.length < 12288 || (moved.mean_block() > 128 && moved.length > one_piece);
}

// MPICH packs short messages of numbers that are pages apart as fast as the memory gives them.
bool is_fast_in_mpich(const traffic& moved)
{
    return moved.length <= 8192 && moved.mean_block() < 10 && moved.mean_distance() >= 2048;
}

bool is_fast_in_mpi(const traffic& moved)
{
    return implementation_below() == implementation::openmpi ? is_fast_in_openmpi(moved) : is_fast_in_mpich(moved);
}

} // namespace

const char* why_not_worth(const traffic& moved, means by)
{
    const settings& chosen = settings::get();
    if (moved.num_blocks <= 1) {
        return "contiguous";
    }
    if (moved.length < chosen.min_size.value_or(chosen.takes_all_types ? 0 : measured_min_size())) {
        return "short";
    }
    // A card that carries windows leaves nothing to be copied.
    if (by == means::window && !chosen.takes_all_types && !library::has_cards() && is_fast_in_mpi(moved)) {
        return "as fast in MPI";
    }
    return nullptr;
}

} // namespace ucxl::mpi
