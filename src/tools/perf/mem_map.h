// The test mem_map: the cost of mapping in this process alone, next to ucp_mem_map of as much plain memory.
#pragma once

#include "options.h"
#include "report.h"
#include "session.h"

namespace ucxl::perf
{

std::vector<report_row> measure_mem_map(const options& options, session& session, const ucx_layout::layout& layout,
                                        reporter& report);

} // namespace ucxl::perf
