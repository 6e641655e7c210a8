// Messages that UCX and the library log. By default they go to standard output, where the tools print their results
// (maybe as JSON). So warnings and errors go to standard error instead. A tool that reports an error in its own words
// holds them back:
//
//     held_log log;
//     if (ucp_layout_parse(text, &layout) != UCS_OK) { give_up("{}", log.text()); }
#pragma once

#include <string>

namespace ucxl::tools
{

// Call it once, at the start of main().
void log_to_stderr();

// Collects the errors of the calls of its thread instead of printing them. One object at a time in each thread.
class held_log
{
public:
    held_log();
    ~held_log();
    held_log(const held_log&)            = delete;
    held_log& operator=(const held_log&) = delete;

    // The messages, joined by "; ", or `otherwise` if there are none.
    std::string text(const char* otherwise) const;
};

} // namespace ucxl::tools
