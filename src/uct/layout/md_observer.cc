#include "md_observer.h"

#include "observe.h"

#include <array>
#include <atomic>

namespace ucxl
{

namespace
{

thread_local std::uint64_t num_registrations = 0;
thread_local const void* last_registering_md = nullptr;

std::array<std::atomic<md_close_callback>, max_md_close_callbacks> callbacks{};

} // namespace

std::uint64_t md_observer::registrations()
{
    return num_registrations;
}

const void* md_observer::last_md()
{
    return last_registering_md;
}

bool on_md_close(md_close_callback callback)
{
    for (auto& place : callbacks) {
        md_close_callback expected = nullptr;
        if (place.compare_exchange_strong(expected, callback)) {
            return true;
        }
    }
    return false;
}

void observe_registration(const void* md)
{
    ++num_registrations;
    last_registering_md = md;
}

void observe_close(const void* md)
{
    for (const auto& place : callbacks) {
        if (const md_close_callback callback = place.load(); callback != nullptr) {
            callback(md);
        }
    }
}

} // namespace ucxl
