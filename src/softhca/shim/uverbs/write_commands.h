// The commands of the write interface (ib_user_verbs.h), which is older than ioctl. New libraries send them through an
// ioctl, too.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>

namespace ucxl::softhca
{

class uverbs_call;

struct write_command {
    std::uint32_t command         = 0;
    bool extended                 = false;
    std::size_t request_bytes     = 0;
    std::size_t response_bytes    = 0;
    int (*run)(uverbs_call& call) = nullptr;
};

// Finds a command by its number, with the flag of extended commands: 0 or an errno.
int find_write_command(std::uint32_t number, const write_command*& found);
int run_write_command(uverbs_call& call, const write_command& command);

// Requests and responses are UVERBS_ATTR_CORE_IN and _OUT of the call. 0 or an errno.
int write_query_device(uverbs_call& call);
int write_query_device_ex(uverbs_call& call);
int write_alloc_pd(uverbs_call& call);
int write_reg_mr(uverbs_call& call);
int write_rereg_mr(uverbs_call& call);
int write_alloc_mw(uverbs_call& call);
int write_create_comp_channel(uverbs_call& call);
int write_resize_cq(uverbs_call& call);
int write_modify_cq(uverbs_call& call);
int write_modify_qp(uverbs_call& call);
int write_modify_qp_ex(uverbs_call& call);
int write_query_qp(uverbs_call& call);
int write_attach_mcast(uverbs_call& call);
int write_detach_mcast(uverbs_call& call);
int write_modify_srq(uverbs_call& call);
int write_query_srq(uverbs_call& call);

} // namespace ucxl::softhca
