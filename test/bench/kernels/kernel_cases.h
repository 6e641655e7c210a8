// What `bench kernels` measures: layouts, each with the loop a programmer would write by hand for it (block sizes known
// to the compiler). Those of one array are cases of bench/common/layout_case.h.
#pragma once

#include "bench/common/layout_case.h"

#include "ucs/layout/layout.h"

#include <string>
#include <vector>

namespace ucxl::bench
{

struct kernel_case {
    std::string name;
    layout_ptr what;
    std::size_t extent; // bytes of memory; source i begins at base_offsets[i]
    std::vector<std::size_t> base_offsets;
    hand_loop hand;
};

// Of about so many packed bytes each.
std::vector<kernel_case> kernel_cases(std::size_t payload);
// The layouts of the demo that are not among those; of the sizes they have there.
std::vector<kernel_case> demo_cases();

} // namespace ucxl::bench
