// What the device did, as JSON: for --stats.
#pragma once

#include <string>

#include "softhca/core/arena.h"

namespace ucxl::softhca::run
{

std::string report_as_json(const arena& memory);

} // namespace ucxl::softhca::run
