// All structures of src/prm by name, with typed access to their fields behind plain functions, so that a test can loop
// over structures without being a template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "prm/reflect.h"

namespace ucxl::prm
{

struct field_access {
    const field_info* info;
    std::uint64_t (*get)(const std::byte* structure);           // through view::get
    bool (*set)(std::byte* structure, std::uint64_t new_value); // through view::set
};

struct structure_access {
    const structure_info* info;
    std::vector<field_access> numbers; // the fields that are numbers
};

const std::map<std::string_view, structure_access>& registry();

} // namespace ucxl::prm
