#include "refusal.h"

#include <ucs/debug/log_def.h>

#include <atomic>
#include <cstdint>

namespace ucxl
{

namespace
{

constexpr unsigned max_messages = 16; // of the process

} // namespace

void report_refusal(const char* operation, const void* address, std::size_t length, const char* why)
{
    static std::atomic<unsigned> messages{0};
    const unsigned number = messages.fetch_add(1, std::memory_order_relaxed);
    if (number < max_messages) {
        ucs_error("%s: %zu bytes at %p %s%s", operation, length, address, why,
                  number + 1 == max_messages ? " (no more such messages)" : "");
    } else if (number > UINT32_MAX / 2) {
        messages.store(max_messages, std::memory_order_relaxed);
    }
}

} // namespace ucxl
