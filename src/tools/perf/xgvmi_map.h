// The test xgvmi_map: what it costs the host and the DPU process to share a new buffer and to let it go.
#pragma once

#include "memory_owner.h"
#include "options.h"
#include "report.h"
#include "session.h"

namespace ucxl::perf
{

std::vector<report_row> measure_xgvmi_map(const options& options, session& session, memory_owner& owner,
                                          method_kind kind);

} // namespace ucxl::perf
