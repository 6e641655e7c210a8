// Converts between the record of a queue pair and the context (qpc) in its commands.
#pragma once

#include "prm/qpc.h"
#include "softhca/core/arena/objects.h"

namespace ucxl::softhca
{

// Writes the fields of the context that can change during the life of a queue pair to the record.
void load_context(qp_record& qp, prm::const_view<prm::qpc> context);

// The context as QUERY_QP answers it.
void store_context(const qp_record& qp, prm::view<prm::qpc> context);

} // namespace ucxl::softhca
