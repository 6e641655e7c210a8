// Owners of verbs objects. A failed destruction is logged: something still uses the object.
#pragma once

#include <cerrno>
#include <cstring>
#include <memory>

#include "abi/log.h"
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

namespace ucxl::mlx5
{

template <auto Destroy>
struct verbs_destroyer {
    template <typename Object>
    void operator()(Object* object) const
    {
        if (const int error = Destroy(object); error != 0) {
            ucs_warn("an object of the device could not be destroyed: %s", std::strerror(error > 0 ? error : errno));
        }
    }
};

using cq_owner   = std::unique_ptr<ibv_cq, verbs_destroyer<ibv_destroy_cq>>;
using qp_owner   = std::unique_ptr<ibv_qp, verbs_destroyer<ibv_destroy_qp>>;
using mr_owner   = std::unique_ptr<ibv_mr, verbs_destroyer<ibv_dereg_mr>>;
using mkey_owner = std::unique_ptr<mlx5dv_mkey, verbs_destroyer<mlx5dv_destroy_mkey>>;
using devx_owner = std::unique_ptr<mlx5dv_devx_obj, verbs_destroyer<mlx5dv_devx_obj_destroy>>;

} // namespace ucxl::mlx5
