// Shared by the C functions of uct_mlx5_layout.h: the objects behind the handles, and the log of errors.
#pragma once

#include <memory>

#include "domain.h"
#include "region.h"
#include "ucs/sys/argument.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

struct uct_mlx5_layout_domain {
    ucxl::mlx5::domain value;
};

struct uct_mlx5_layout_region {
    std::unique_ptr<ucxl::mlx5::region> value;
    bool replace = true; // false for WITH_POST_WR with AVOID_INVALIDATION
};

namespace ucxl::mlx5
{

// Sets a field of the attributes if field_mask selects it.
template <typename Field, typename Value>
void fill(std::uint64_t field_mask, std::uint64_t bit, Field& field, const Value& value)
{
    if ((field_mask & bit) != 0) {
        field = static_cast<Field>(value);
    }
}

} // namespace ucxl::mlx5
