// Descriptions of the device's structures by others, in the text form of make_scapy_vectors.py and make_ifc_vectors.py,
// and the comparison of src/prm with them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "registry.h"

namespace ucxl::prm
{

struct golden_field {
    unsigned offset, width;
    std::string value; // hexadecimal, where there is one
};

struct golden_structure {
    std::size_t size_bytes = 0;
    std::map<std::string, golden_field> fields;
    std::vector<std::byte> bytes; // the values in place, where there are values
};

// By name; nothing for a file that cannot be read.
std::map<std::string, golden_structure> load_golden(const char* path);

// How two descriptions of a structure differ; apart from what is said here they are the same.
struct differences {
    std::map<std::string, std::string> renamed{}; // our name of a field, theirs
    std::set<std::string> only_ours{};            // "*": whatever else we have
    std::set<std::string> only_theirs{};          // "*": whatever else they have
};

// The field of theirs that is this one of ours, or null.
const golden_field* find(const golden_structure& golden, const differences& expected, std::string_view ours);

// Sizes, offsets and widths, and which fields there are.
void compare_places(const structure_info& info, const golden_structure& golden, const differences& expected);

} // namespace ucxl::prm
