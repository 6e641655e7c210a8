// The way to a peer: as a program gives it (ib_uverbs_qp_dest), and as the context of a queue pair has it (prm::ads).
#pragma once

#include <rdma/ib_user_verbs.h>

#include "mailbox.h"
#include "prm/qp.h"

namespace ucxl::softhca
{

void set_path(mailbox<prm::modify_qp_in>& in, const ib_uverbs_qp_dest& to);
void get_path(prm::const_view<prm::ads> path, ib_uverbs_qp_dest& to);

} // namespace ucxl::softhca
