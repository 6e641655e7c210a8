// Lists of pieces and interleaved items of the C API as a layout and the bases it is applied to.
#pragma once

#include <span>
#include <vector>

#include "failure.h"
#include "region.h"
#include "ucs/layout/layout.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace ucxl::mlx5
{

struct description {
    layout_ptr of;
    std::vector<source_base> bases;
};

outcome<description> describe_list(std::span<const ibv_sge> pieces);
outcome<description> describe_interleaved(std::span<const uct_mlx5_layout_item_t> items);
outcome<description> describe_wire(std::span<const std::byte> wire, std::span<const uct_mlx5_layout_base_t> bases);

} // namespace ucxl::mlx5
