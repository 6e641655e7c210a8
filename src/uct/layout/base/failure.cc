#include "failure.h"

#include "failure_page.h"

#include "sys/fork.h"
#include "ucs/sys/log_limit.h"

#include "abi/log.h"
#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <mutex>
#include <utility>

namespace ucxl
{

namespace
{

constexpr std::array<const char*, num_failure_kinds> names = {
    "read",        "write",        "peer_read",     "peer_write", "peer_atomic",
    "remote_read", "remote_write", "remote_atomic", "datatype",
};

struct watcher {
    std::mutex lock;
    failure_callback callback = nullptr;
    void* arg                 = nullptr;
};

watcher& the_watcher()
{
    return only_one_over_fork<watcher>();
}

// Failures are told under locks of others, so fork takes it after these: it is made when the library is loaded.
[[gnu::constructor(200)]] void make_watcher_at_load()
{
    the_watcher();
}

void log(const failure& failure)
{
    static log_limit limit;
    std::uint64_t left_out = 0;
    if (!limit.take(left_out)) {
        return;
    }
    const auto* const address = reinterpret_cast<const void*>(failure.address);
    const auto length         = static_cast<std::size_t>(failure.length);
    if (left_out > 0) {
        ucs_error("%s: %zu bytes at %p %s (%lu more failures were not logged)", failure.operation, length, address,
                  failure.reason, left_out);
    } else {
        ucs_error("%s: %zu bytes at %p %s", failure.operation, length, address, failure.reason);
    }
}

void show_count(void*, ucs_string_buffer_t* text, void*, std::uint64_t index)
{
    const failure_counts counts = count_failures();
    const bool silent           = index >= num_failure_kinds;
    const auto& shown           = silent ? counts.silent : counts.all;
    ucs_string_buffer_appendf(text, "%lu\n", shown[index % num_failure_kinds]);
}

} // namespace

void report_failure(const failure& failure) noexcept
{
    if (failure_page* const page = own_failure_page()) {
        const auto kind = std::to_underlying(failure.kind);
        page->all[kind].fetch_add(1, std::memory_order_relaxed);
        if (failure.silent) {
            page->silent[kind].fetch_add(1, std::memory_order_relaxed);
        }
    }
    log(failure);
    failure_callback callback = nullptr;
    void* arg                 = nullptr;
    {
        watcher& watching = the_watcher();
        const std::lock_guard guard(watching.lock);
        callback = watching.callback;
        arg      = watching.arg;
    }
    if (callback != nullptr) {
        callback(failure, arg);
    }
}

failure_counts count_failures()
{
    return read_failure_page(known_failure_page());
}

void watch_failures(failure_callback callback, void* arg)
{
    watcher& watching = the_watcher();
    const std::lock_guard guard(watching.lock);
    watching.callback = callback;
    watching.arg      = arg;
}

void publish_failure_counts()
{
    static std::once_flag once;
    static char all;
    static char silent;
    std::call_once(once, [] {
        ucs_vfs_obj_add_dir(nullptr, &all, "layout/failures");
        ucs_vfs_obj_add_dir(&all, &silent, "silent");
        for (std::uint64_t kind = 0; kind < num_failure_kinds; ++kind) {
            ucs_vfs_obj_add_ro_file(&all, show_count, nullptr, kind, "%s", names[kind]);
            ucs_vfs_obj_add_ro_file(&silent, show_count, nullptr, kind + num_failure_kinds, "%s", names[kind]);
        }
    });
}

} // namespace ucxl
