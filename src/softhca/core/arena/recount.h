// Recounts the counters that follow from the records: users, live records, live keys and used device memory.
#pragma once

#include "arena.h"

namespace ucxl::softhca
{

void recount(arena& memory);

} // namespace ucxl::softhca
