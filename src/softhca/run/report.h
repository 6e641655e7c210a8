// The report of --stats as JSON: what the device did.
#pragma once

#include <string>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca::run
{

std::string report_as_json(const arena& memory);

} // namespace ucxl::softhca::run
