// A counted reference to a layout of the public API.
#pragma once

#include <ucp_layout.h>

#include <memory>
#include <type_traits>

namespace ucxl::mpi
{

using layout_ptr = std::shared_ptr<std::remove_pointer_t<ucp_layout_h>>;

// Takes over the caller's reference.
inline layout_ptr owned_layout(ucp_layout_h layout)
{
    return {layout, ucp_layout_destroy};
}

} // namespace ucxl::mpi
