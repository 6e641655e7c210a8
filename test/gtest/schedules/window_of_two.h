// A window of two blocks of a word each, in places of a region that have a number. Both words at a place hold it.
#pragma once

#include "ucs/window/window.h"
#include "uct/layout/peer/key.h"

#include <cstddef>
#include <cstdint>

namespace ucxl::test
{

inline constexpr std::uint64_t num_places = 64;
inline constexpr std::uint64_t two_pages  = 8192; // a block in each

// Writes the numbers of all places.
void number_places(const region& memory);
window* make_window_of_two(const region& memory, std::uint64_t place);
void bind_window_of_two(window& changed, const region& memory, std::uint64_t place);

// Whether the file that the key names has a valid record of it, and that shows the region.
bool record_shows(const shm_key& key, const region& memory);

} // namespace ucxl::test
