// Between a queue pair's record and the context of the commands about it.
#pragma once

#include "objects.h"
#include "prm/qpc.h"

namespace ucxl::softhca
{

// What a context says that can change during the life of a queue pair, into the record.
void load_context(qp_record& qp, prm::const_view<prm::qpc> context);

// The context as QUERY_QP answers it.
void store_context(const qp_record& qp, prm::view<prm::qpc> context);

} // namespace ucxl::softhca
