#include "settings.h"

#include "sys/size_text.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <strings.h>
#include <unistd.h>

namespace ucxl::heap
{

namespace
{

constexpr std::size_t default_min = std::size_t{128} << 10;
constexpr std::size_t least_min   = std::size_t{32} << 10; // less would not be whole pages

// Not by stdio, which allocates.
[[gnu::format(printf, 1, 2)]] void write_line(const char* format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    const auto known = length < static_cast<int>(sizeof(text)) ? static_cast<std::size_t>(length) : sizeof(text) - 1;
    static_cast<void>(write(STDERR_FILENO, text, known) + 1);
}

void read_option(const char* name, const char* value, std::size_t& setting)
{
    if (value == nullptr || strcasecmp(value, "auto") == 0) {
        return;
    }
    if (const auto size = read_size(value)) {
        setting = *size;
    } else {
        write_line("ucx-layout-heap ERROR %s=%.60s is not a number of bytes such as 128k, auto or inf; the default is "
                   "used\n",
                   name, value);
    }
}

std::size_t memory_of_host()
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page  = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : 0;
}

bool is_no(const char* value)
{
    return value != nullptr && (strcasecmp(value, "n") == 0 || strcasecmp(value, "no") == 0 ||
                                strcasecmp(value, "off") == 0 || std::strcmp(value, "0") == 0);
}

} // namespace

settings settings::read()
{
    settings made{
        .min = default_min, .limit = memory_of_host(), .has_huge_pages = !is_no(std::getenv("UCX_LAYOUT_HUGE_PAGES"))};
    read_option("UCX_LAYOUT_HEAP_MIN", std::getenv("UCX_LAYOUT_HEAP_MIN"), made.min);
    read_option("UCX_LAYOUT_HEAP_LIMIT", std::getenv("UCX_LAYOUT_HEAP_LIMIT"), made.limit);
    if (made.min < least_min) {
        made.min = least_min;
    }
    return made;
}

void log_stays_out(const char* reason)
{
    const char* const level = std::getenv("UCX_LOG_LEVEL");
    if (level != nullptr && std::strchr("iIdDtT", level[0]) != nullptr && strcasecmp(level, "diag") != 0) {
        write_line("ucx-layout-heap INFO  large allocations are plain memory: %s\n", reason);
    }
}

void log_lost_in_child(std::size_t length)
{
    write_line("ucx-layout-heap WARN  a child cannot use %zu MB of large blocks: there was no room to copy them\n",
               length >> 20);
}

} // namespace ucxl::heap
