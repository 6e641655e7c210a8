#include "log.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <ucs/debug/log_def.h>

namespace ucxl::tools
{

namespace
{

// Of each thread: who holds the log wants the errors of its own calls.
struct log_state {
    bool holding = false;
    std::string held;
};

log_state& state()
{
    static thread_local log_state one;
    return one;
}

[[gnu::format(printf, 6, 0)]]
ucs_log_func_rc_t handle(const char* file, unsigned line, const char* function, ucs_log_level_t level,
                         const ucs_log_component_config_t* component, const char* format, va_list arguments)
{
    if (level > UCS_LOG_LEVEL_WARN) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    if (level > component->log_level) {
        return UCS_LOG_FUNC_RC_STOP;
    }
    // UCX aborts after an assertion or a fatal error, so print it in full.
    if (level == UCS_LOG_LEVEL_FATAL) {
        return ucs_log_default_handler(file, line, function, level, component, format, arguments);
    }
    std::array<char, 1024> text{};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    if (state().holding && level == UCS_LOG_LEVEL_ERROR) {
        state().held += (state().held.empty() ? "" : "; ");
        state().held += text.data();
    } else {
        std::fprintf(stderr, "%s: %s\n", level == UCS_LOG_LEVEL_ERROR ? "error" : "warning", text.data());
    }
    return UCS_LOG_FUNC_RC_STOP;
}

} // namespace

void log_to_stderr()
{
    ucs_log_push_handler(handle);
}

held_log::held_log()
{
    state().holding = true;
    state().held.clear();
}

held_log::~held_log()
{
    state().holding = false;
}

std::string held_log::text(const char* otherwise) const
{
    return state().held.empty() ? otherwise : state().held;
}

} // namespace ucxl::tools
