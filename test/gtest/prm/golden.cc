#include "golden.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace ucxl::prm
{
namespace
{

std::vector<std::byte> from_hex(std::string text, std::size_t size)
{
    text.resize(size * 2, '0');
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; i++) {
        bytes[i] = static_cast<std::byte>(std::stoul(text.substr(i * 2, 2), nullptr, 16));
    }
    return bytes;
}

// Whether the field is in the list of fields that only one side has.
void expect_listed(const std::set<std::string>& alone, const std::string& name, bool is_alone, const char* whose)
{
    if (!alone.contains("*")) {
        EXPECT_EQ(is_alone, alone.contains(name)) << name << (is_alone ? " is only " : " is not only ") << whose;
    }
}

} // namespace

std::map<std::string, golden_structure> load_golden(const char* path)
{
    std::map<std::string, golden_structure> all;
    std::ifstream file(path);
    std::string line;
    golden_structure* current = nullptr;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string first, second, width, value;
        words >> first >> second >> width >> value;
        if (first == "struct") {
            (current = &all[second])->size_bytes = std::stoul(width);
        } else if (first == "hex") {
            current->bytes = from_hex(second, current->size_bytes);
        } else {
            current->fields[first] = {static_cast<unsigned>(std::stoul(second, nullptr, 16)),
                                      static_cast<unsigned>(std::stoul(width)), value};
        }
    }
    return all;
}

const golden_field* find(const golden_structure& golden, const differences& expected, std::string_view ours)
{
    const auto other = expected.renamed.find(std::string(ours));
    const auto found = golden.fields.find(other == expected.renamed.end() ? std::string(ours) : other->second);
    return found == golden.fields.end() ? nullptr : &found->second;
}

void compare_places(const structure_info& info, const golden_structure& golden, const differences& expected)
{
    EXPECT_EQ(golden.size_bytes, info.size_bytes);
    std::set<const golden_field*> seen;
    for (const field_info& ours : info.fields) {
        const golden_field* theirs = find(golden, expected, ours.name);
        expect_listed(expected.only_ours, std::string(ours.name), theirs == nullptr, "ours");
        if (theirs == nullptr) {
            continue;
        }
        seen.insert(theirs);
        EXPECT_EQ(ours.offset, theirs->offset) << ours.name;
        EXPECT_EQ(ours.width * ours.count, theirs->width) << ours.name;
    }
    for (const auto& [name, field] : golden.fields) {
        expect_listed(expected.only_theirs, name, !seen.contains(&field), "theirs");
    }
}

} // namespace ucxl::prm
