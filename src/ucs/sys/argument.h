// The guard of every public function: it refuses NULL pointers with one wording and lets no exception out.
//
// Example: return checked(__func__, {{"layout", layout}, {"attr", attr}}, [&] { return query(*layout->value, *attr);
// });
#pragma once

#include "status.h"

#include <initializer_list>

namespace ucxl
{

// A pointer that must not be NULL.
struct required {
    const char* name;
    const void* value;
};

inline ucs_status_t check_required(const char* function, std::initializer_list<required> pointers)
{
    for (const auto& pointer : pointers) {
        if (pointer.value == nullptr) {
            ucs_error("%s: %s is NULL", function, pointer.name);
            return UCS_ERR_INVALID_PARAM;
        }
    }
    return UCS_OK;
}

template <typename Body>
ucs_status_t checked(const char* function, std::initializer_list<required> pointers, Body&& body) noexcept
{
    const auto status = check_required(function, pointers);
    return status == UCS_OK ? guarded(function, std::forward<Body>(body)) : status;
}

} // namespace ucxl
