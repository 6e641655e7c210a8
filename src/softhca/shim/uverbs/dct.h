// The attributes of DC targets, which are queue pairs to verbs: as mlx5_ib_modify_dct() and mlx5_ib_dct_query_qp() of
// the kernel's driver.
#pragma once

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "call.h"
#include "softhca/shim/objects/verbs.h"

namespace ucxl::softhca
{

// RESET to INIT collects attributes, INIT to RTR makes the target; its number goes to the answer. Nothing else is
// possible.
int modify_target(uverbs_call& call, qp_object& target, const ib_uverbs_modify_qp& request,
                  mlx5_ib_modify_qp_resp& answer);

int query_target(uverbs_call& call, const qp_object& target, const ib_uverbs_query_qp& request);

} // namespace ucxl::softhca
