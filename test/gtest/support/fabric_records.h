// The records of the software devices that softhca-run started this process with.
//
// Example: const softhca::arena& records = fabric_records(); records.mkeys.live
#pragma once

#include "softhca/core/arena/arena.h"
#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/settings.h"

#include <cstdlib>
#include <stdexcept>

namespace ucxl::test
{

// They stay mapped until the process ends. Throws std::runtime_error if softhca-run did not start this process.
inline softhca::arena& fabric_records()
{
    const char* const text = std::getenv(softhca::fabric_variable);
    const auto place       = softhca::parse_fabric_place(text == nullptr ? "" : text);
    if (!place) {
        throw std::runtime_error("not below softhca-run");
    }
    const auto memory = softhca::fabric_memory::open(place->process, place->file);
    if (!memory) {
        throw std::runtime_error(memory.error());
    }
    return memory->records();
}

} // namespace ucxl::test
