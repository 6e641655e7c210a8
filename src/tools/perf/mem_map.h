// The test mem_map: what mapping costs, in this process alone, with ucp_mem_map of as much plain memory beside it.
#pragma once

#include "options.h"
#include "report.h"
#include "session.h"

namespace ucxl::perf
{

std::vector<report_row> measure_mem_map(const options& given, session& with, const ucx_layout::layout& layout,
                                        reporter& report);

} // namespace ucxl::perf
