// The output of the client: ucx_perftest's table with a column that compares each method to the first, or
// comma-separated values, or one JSON document for all sizes.
#pragma once

#include "options.h"
#include "settings.h"
#include "statistics.h"

#include <optional>
#include <string>
#include <vector>

namespace ucxl::perf
{

// The results of a method, or of an operation of mem_map, so far.
struct report_row {
    std::string name;
    method_statistics statistics;
    std::uint64_t validated = 0;           // messages
    std::optional<std::uint64_t> copied{}; // bytes that this process's CPU moved through windows
};

struct skipped_method {
    std::string name;
    std::string reason;
};

class reporter
{
public:
    virtual ~reporter()                                                                = default;
    virtual void begin(const settings& settings, const layout_pair& layouts)           = 0;
    virtual void progress(const report_row& row)                                       = 0;
    virtual void finish(const settings& settings, const std::vector<report_row>& rows) = 0;
    // Call it after finish() of its run.
    virtual void skipped(const skipped_method& method) = 0;
    virtual void end() {}
};

std::unique_ptr<reporter> make_reporter(const options& options);

// The line about what the CPU of one side moved through windows.
std::string copied_text(const std::string& method, std::uint64_t bytes);

// "strided(16384,64,128)", shortened if it is long.
std::string layout_text(const ucx_layout::layout& layout);
// "1048576 bytes in 16384 blocks of 64 bytes"
std::string layout_summary(const ucx_layout::layout& layout);

} // namespace ucxl::perf
