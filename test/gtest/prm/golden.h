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
    std::string value; // hexadecimal; empty when there is none
};

struct golden_structure {
    std::size_t size_bytes = 0;
    std::map<std::string, golden_field> fields;
    std::vector<std::byte> bytes; // the structure with these values; empty when there are none
};

// By name. Empty when the file cannot be read.
std::map<std::string, golden_structure> load_golden(const char* path);

// The allowed differences between two descriptions of a structure; all else must be equal.
struct differences {
    std::map<std::string, std::string> renamed{}; // our name of a field to theirs
    std::set<std::string> only_ours{};            // "*": any field that only we have
    std::set<std::string> only_theirs{};          // "*": any field that only they have
};

// Their field for one of ours, or null.
const golden_field* find(const golden_structure& golden, const differences& expected, std::string_view ours);

// Compares sizes, offsets, widths and the set of fields.
void compare_places(const structure_info& info, const golden_structure& golden, const differences& expected);

} // namespace ucxl::prm
