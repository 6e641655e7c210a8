// What UCX and the library log. The default goes to standard output, where the tools print their results (maybe as
// JSON), so warnings and errors are turned to standard error; and a tool that will say in its own words what went wrong
// holds them back:
//
//     held_log log;
//     if (ucp_layout_parse(text, &layout) != UCS_OK) { give_up("{}", log.text()); }
#pragma once

#include <string>

namespace ucxl::tools
{

// Once, at the start of main().
void log_to_stderr();

// While it lives, errors are collected instead of printed. One at a time, in the main thread.
class held_log
{
public:
    held_log();
    ~held_log();
    held_log(const held_log&)            = delete;
    held_log& operator=(const held_log&) = delete;

    // The messages, joined by "; ", or `otherwise` when there were none.
    std::string text(const char* otherwise) const;
};

} // namespace ucxl::tools
