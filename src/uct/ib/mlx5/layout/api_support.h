// What the C functions of uct_mlx5_layout.h share: the objects behind handles, and the log of whoever chooses a status.
#pragma once

#include <memory>
#include <string>

#include "domain.h"
#include "region.h"
#include "ucs/sys/status.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

struct uct_mlx5_layout_domain {
    ucxl::mlx5::domain value;
};

struct uct_mlx5_layout_region {
    std::unique_ptr<ucxl::mlx5::region> value;
    bool replace = true; // what WITH_POST_WR without AVOID_INVALIDATION asked for
};

namespace ucxl::mlx5
{

inline ucs_status_t log_failure(const char* function, const failure& what)
{
    ucs_error("%s: %s", function, what.message.c_str());
    return what.status;
}

inline ucs_status_t invalid(const char* function, const std::string& message)
{
    return log_failure(function, {UCS_ERR_INVALID_PARAM, message});
}

template <typename T>
ucs_status_t status_of(const char* function, const outcome<T>& done)
{
    return done ? UCS_OK : log_failure(function, done.error());
}

} // namespace ucxl::mlx5
