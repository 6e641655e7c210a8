// What `bench kernels` measures: layouts, each with the loop a programmer would write by hand for it (block sizes known
// to the compiler). "vertices" is an array of records {3, 3, 2 floats}.
#pragma once

#include "ucs/layout/layout.h"

#include <functional>
#include <string>
#include <vector>

namespace ucxl::bench
{

using hand_pack   = std::function<void(std::byte* packed, const std::byte* memory)>;
using hand_unpack = std::function<void(std::byte* memory, const std::byte* packed)>;

struct kernel_case {
    std::string name;
    layout_ptr what;
    std::size_t extent; // bytes of memory; source i begins at base_offsets[i]
    std::vector<std::size_t> base_offsets;
    hand_pack pack;
    hand_unpack unpack;
};

// Of about so many packed bytes each.
std::vector<kernel_case> kernel_cases(std::size_t payload);
// The layouts of the demo that are not among those; of the sizes they have there.
std::vector<kernel_case> demo_cases();

} // namespace ucxl::bench
