#include "log.h"

#include "ucx.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>

#include <ucs/config/types.h>

namespace ucxl::abi
{

namespace
{

// The first member of UCX's options.
std::atomic<ucs_log_component_config_t*> component{nullptr};

struct captured_text {
    char* at;         // the final 0
    std::size_t left; // bytes from there on
    bool is_first;
};

thread_local captured_text captured{nullptr, 0, true};

bool is_captured(int level)
{
    return captured.at != nullptr && level <= static_cast<int>(UCS_LOG_LEVEL_ERROR);
}

void append(const char* text)
{
    const char* const separator = captured.is_first ? "" : "\n";
    const int length            = snprintf(captured.at, captured.left, "%s%s", separator, text);
    const auto taken            = std::min(static_cast<std::size_t>(std::max(length, 0)), captured.left - 1);
    captured                    = {captured.at + taken, captured.left - taken, false};
}

} // namespace

void capture_errors(char* text, std::size_t length)
{
    captured = {text, length, true};
    if (text != nullptr) {
        *text = 0;
    }
}

void bind_log()
{
    component = find_object<ucs_log_component_config_t>("ucs_global_opts");
}

bool is_logged(int level)
{
    const auto* const options = component.load(std::memory_order_relaxed);
    return is_captured(level) ||
           level <= (options != nullptr ? static_cast<int>(options->log_level) : static_cast<int>(UCS_LOG_LEVEL_WARN));
}

void log(const char* file, unsigned line, const char* function, int level, const char* format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (is_captured(level)) {
        append(text);
        return;
    }
    auto* const options = component.load(std::memory_order_relaxed);
    if (options != nullptr) {
        ucs_log_dispatch(file, line, function, static_cast<ucs_log_level_t>(level), options, "%s", text);
    } else {
        fprintf(stderr, "ucx-layout: %s\n", text);
    }
}

} // namespace ucxl::abi
