// Turns lists of pieces and interleaved items of the C API into a layout and its bases.
#pragma once

#include <cstddef>
#include <vector>

#include "region.h"
#include "sys/error.h"
#include "ucs/layout/layout.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace ucxl::mlx5
{

struct description {
    layout_ptr shape;
    std::vector<source_base> bases;
};

// An error names the parameter of the C function, which has the same name here.
result<description> describe_list(const ibv_sge* sg_list, std::size_t num_sge);
result<description> describe_interleaved(const uct_mlx5_layout_item_t* items, std::size_t num_items);
result<description> describe_wire(const void* wire, std::size_t length, const uct_mlx5_layout_base_t* bases,
                                  std::size_t num_bases);

} // namespace ucxl::mlx5
