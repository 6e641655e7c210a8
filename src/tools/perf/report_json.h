// The results as one JSON document, printed at the end; the manual page describes it.
#pragma once

#include "report.h"

#include <memory>

namespace ucxl::perf
{

class json_reporter : public reporter
{
public:
    explicit json_reporter(double rank);
    ~json_reporter() override;

    void begin(const settings& settings, const layout_pair& layouts) override;
    void skipped(const skipped_method& method) override;
    void progress(const report_row& /*row*/) override {}
    void finish(const settings& settings, const std::vector<report_row>& rows) override;
    void end() override;

private:
    struct document;
    std::unique_ptr<document> _document;
    double _rank;
};

} // namespace ucxl::perf
