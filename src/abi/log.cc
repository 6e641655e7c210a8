#include "log.h"

#include "ucx.h"

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

} // namespace

void bind_log()
{
    component = find_object<ucs_log_component_config_t>("ucs_global_opts");
}

bool is_logged(int level)
{
    const auto* const options = component.load(std::memory_order_relaxed);
    return level <= (options != nullptr ? static_cast<int>(options->log_level) : static_cast<int>(UCS_LOG_LEVEL_WARN));
}

void log(const char* file, unsigned line, const char* function, int level, const char* format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    auto* const options = component.load(std::memory_order_relaxed);
    if (options != nullptr) {
        ucs_log_dispatch(file, line, function, static_cast<ucs_log_level_t>(level), options, "%s", text);
    } else {
        fprintf(stderr, "ucx-layout: %s\n", text);
    }
}

} // namespace ucxl::abi
