#include "muted_message.h"

#include "ucx.h"

#include <cstdarg>
#include <cstring>

#include <ucs/debug/log_def.h>

namespace ucxl::abi
{

namespace
{

thread_local const char* muted = nullptr;

ucs_log_func_rc_t filter(const char*, unsigned, const char*, ucs_log_level_t, const ucs_log_component_config_t*,
                         const char* format, va_list)
{
    return muted != nullptr && std::strncmp(format, muted, std::strlen(muted)) == 0 ? UCS_LOG_FUNC_RC_STOP
                                                                                    : UCS_LOG_FUNC_RC_CONTINUE;
}

} // namespace

muted_message::muted_message(const char* beginning)
{
    muted = beginning;
}

muted_message::~muted_message()
{
    muted = nullptr;
}

void allow_muted_messages()
{
    const auto num_handlers = find_function<decltype(&ucs_log_num_handlers)>("ucs_log_num_handlers");
    const auto push         = find_function<decltype(&ucs_log_push_handler)>("ucs_log_push_handler");
    // Before UCX has its own handler, that one would come before ours.
    if (num_handlers != nullptr && push != nullptr && num_handlers() > 0) {
        push(filter);
    }
}

} // namespace ucxl::abi
