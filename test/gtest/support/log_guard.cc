#include "log_guard.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <vector>

#include <ucs/debug/log_def.h>

namespace ucxl::test
{

namespace
{

struct awaited {
    std::string part;
    bool required;
    std::size_t count;
};

std::mutex lock;
std::vector<awaited> all_awaited;

[[gnu::format(printf, 6, 0)]]
ucs_log_func_rc_t handle(const char* file, unsigned line, const char*, ucs_log_level_t level,
                         const ucs_log_component_config_t*, const char* format, va_list ap)
{
    if (level > UCS_LOG_LEVEL_WARN) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    char message[1024];
    va_list copy;
    va_copy(copy, ap);
    std::vsnprintf(message, sizeof(message), format, copy);
    va_end(copy);
    {
        const std::lock_guard guard(lock);
        for (awaited& one : all_awaited) {
            if (std::string(message).find(one.part) != std::string::npos) {
                ++one.count;
                return UCS_LOG_FUNC_RC_STOP;
            }
        }
    }
    ADD_FAILURE() << "UCX logged at " << file << ":" << line << ": " << message;
    return UCS_LOG_FUNC_RC_CONTINUE;
}

} // namespace

log_guard::log_guard()
{
    {
        const std::lock_guard guard(lock);
        all_awaited.clear();
    }
    ucs_log_push_handler(handle);
}

log_guard::~log_guard()
{
    ucs_log_pop_handler();
    const std::lock_guard guard(lock);
    for (const awaited& one : all_awaited) {
        if (one.required && one.count == 0) {
            ADD_FAILURE() << "UCX did not log \"" << one.part << "\"";
        }
    }
}

void log_guard::expect(const std::string& part)
{
    const std::lock_guard guard(lock);
    all_awaited.push_back({part, true, 0});
}

void log_guard::allow(const std::string& part)
{
    const std::lock_guard guard(lock);
    all_awaited.push_back({part, false, 0});
}

std::size_t log_guard::count(const std::string& part) const
{
    const std::lock_guard guard(lock);
    std::size_t count = 0;
    for (const awaited& one : all_awaited) {
        count += one.part == part ? one.count : 0;
    }
    return count;
}

} // namespace ucxl::test
