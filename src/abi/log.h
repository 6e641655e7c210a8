// ucs_error(), ucs_warn(), ucs_debug() and their like, for a library that is not linked with UCX: UCX's macros name its
// options object, which is looked up here. Before a UCX is attached, errors and warnings go to stderr.
#pragma once

#include <cstddef>

#include <ucs/debug/log_def.h>

namespace ucxl::abi
{

// The log level of the attached UCX. Warnings are always logged without one.
bool is_logged(int level);

[[gnu::format(printf, 5, 6)]] void log(const char* file, unsigned line, const char* function, int level,
                                       const char* format, ...);

// Takes the log options from the UCX that was found.
void bind_log();

// From now on errors of this thread go into the text and not into the log, a line for each, cut to the length, with a
// final 0. Null: into the log again.
void capture_errors(char* text, std::size_t length);

} // namespace ucxl::abi

#undef ucs_log
#define ucs_log(_level, _format, ...)                                                                                  \
    do {                                                                                                               \
        if (::ucxl::abi::is_logged(_level)) {                                                                          \
            ::ucxl::abi::log(__FILE__, __LINE__, __func__, (_level), _format __VA_OPT__(, ) __VA_ARGS__);              \
        }                                                                                                              \
    } while (0)
