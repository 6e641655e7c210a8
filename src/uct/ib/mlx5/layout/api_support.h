// What the C functions of uct_mlx5_layout.h share: the objects behind handles, and the log of whoever chooses a status.
#pragma once

#include <format>
#include <initializer_list>
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

inline ucs_status_t log_failure(const char* function, const failure& why)
{
    ucs_error("%s: %s", function, why.message.c_str());
    return why.status;
}

inline ucs_status_t invalid(const char* function, const std::string& message)
{
    return log_failure(function, {UCS_ERR_INVALID_PARAM, message});
}

struct named_pointer {
    const char* name;
    const void* pointer;
};

// UCS_OK if none of them is NULL.
inline ucs_status_t check_given(const char* function, std::initializer_list<named_pointer> parameters)
{
    for (const named_pointer& parameter : parameters) {
        if (parameter.pointer == nullptr) {
            return invalid(function, std::format("{} is NULL", parameter.name));
        }
    }
    return UCS_OK;
}

// Sets a field of attributes if it was asked for.
template <typename Field, typename Value>
void fill(std::uint64_t field_mask, std::uint64_t bit, Field& field, const Value& value)
{
    if ((field_mask & bit) != 0) {
        field = static_cast<Field>(value);
    }
}

template <typename T>
ucs_status_t status_of(const char* function, const outcome<T>& done)
{
    return done ? UCS_OK : log_failure(function, done.error());
}

} // namespace ucxl::mlx5
