#include "print_layout.h"

#include "failure.h"
#include "log.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace ucxl::tools
{

namespace
{

template <typename Print>
std::string printed(const char* function, const Print& print)
{
    const held_log log;
    char* text              = nullptr;
    std::size_t length      = 0;
    std::FILE* const stream = open_memstream(&text, &length);
    if (stream == nullptr) {
        give_up("out of memory");
    }
    const ucs_status_t status = print(stream);
    std::fclose(stream); // sets text and length
    const std::unique_ptr<char, decltype(&std::free)> owned(text, std::free);
    if (status != UCS_OK) {
        give_up("{}: {}", function, log.text(ucs_status_string(status)));
    }
    std::string result(text, length);
    while (result.ends_with('\n')) {
        result.pop_back();
    }
    return result;
}

} // namespace

std::string print_layout(const ucx_layout::layout& layout, unsigned fields)
{
    return printed("ucp_layout_print",
                   [&](std::FILE* stream) { return ucp_layout_print(layout.get(), stream, fields); });
}

std::string print_device_plan(const ucx_layout::layout& layout, const char* device)
{
    return printed("ucp_layout_print_device",
                   [&](std::FILE* stream) { return ucp_layout_print_device(layout.get(), device, stream); });
}

std::string print_device(const char* device)
{
    return printed("ucp_layout_print_device",
                   [&](std::FILE* stream) { return ucp_layout_print_device(nullptr, device, stream); });
}

std::string print_hooks()
{
    return printed("ucp_layout_print_hooks", [&](std::FILE* stream) { return ucp_layout_print_hooks(stream); });
}

std::string print_windows(pid_t pid)
{
    return printed("ucp_layout_print_windows",
                   [&](std::FILE* stream) { return ucp_layout_print_windows(pid, stream); });
}

std::string print_memory(pid_t pid)
{
    return printed("ucp_layout_print_memory", [&](std::FILE* stream) { return ucp_layout_print_memory(pid, stream); });
}

} // namespace ucxl::tools
