// Counters that follow from the records, counted anew.
#pragma once

#include "arena.h"

namespace ucxl::softhca
{

// References, numbers of live records, live keys and device memory in use.
void recount(arena& memory);

} // namespace ucxl::softhca
