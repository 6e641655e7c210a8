// ucp_layout_failure_query, ucp_layout_failure_watch and ucp_layout_print_hooks.
#include "ucp_layout_failure.h"
#include "ucs/sys/argument.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/messages/hooks.h"

#include <algorithm>
#include <format>
#include <mutex>
#include <string>
#include <utility>

#include <dlfcn.h>

using namespace ucxl;

namespace
{

static_assert(UCP_LAYOUT_FAILURE_LAST == num_failure_kinds);
static_assert(UCP_LAYOUT_FAILURE_PEER_READ == std::to_underlying(failure_kind::peer_read));
static_assert(UCP_LAYOUT_FAILURE_REMOTE_ATOMIC == std::to_underlying(failure_kind::remote_atomic));
static_assert(UCP_LAYOUT_FAILURE_DATATYPE == std::to_underlying(failure_kind::datatype));

constexpr std::uint64_t known_fields = UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL | UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT;
constexpr std::uint64_t all_members  = 0x3f;

struct watcher {
    std::mutex lock;
    ucp_layout_failure_cb_t callback = nullptr;
    void* arg                        = nullptr;
};

watcher& the_watcher()
{
    static watcher& only = *new watcher; // never destroyed: destructors that run later may report failures
    return only;
}

void tell(const failure& told, void*)
{
    ucp_layout_failure_cb_t callback = nullptr;
    void* arg                        = nullptr;
    {
        watcher& watching = the_watcher();
        const std::lock_guard guard(watching.lock);
        callback = watching.callback;
        arg      = watching.arg;
    }
    if (callback == nullptr) {
        return;
    }
    const ucp_layout_failure_t shown{.field_mask = all_members,
                                     .kind       = static_cast<ucp_layout_failure_kind_t>(told.kind),
                                     .silent     = told.silent ? 1 : 0,
                                     .address    = told.address,
                                     .length     = static_cast<std::size_t>(told.length),
                                     .operation  = told.operation,
                                     .reason     = told.reason};
    callback(&shown, arg);
}

ucs_status_t query(pid_t pid, ucp_layout_failure_attr_t& attr)
{
    const auto status = check_field_mask("ucp_layout_failure_query", attr.field_mask, known_fields);
    if (status != UCS_OK) {
        return status;
    }
    failure_counts counts;
    if (pid == 0) {
        counts = count_failures();
    } else if (!count_failures_of(pid, counts)) {
        ucs_error("ucp_layout_failure_query: process %d does not exist, cannot be inspected by this process, or has "
                  "not loaded "
                  "this release of the library",
                  static_cast<int>(pid));
        return UCS_ERR_NO_ELEM;
    }
    if (attr.field_mask & UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL) {
        std::ranges::copy(counts.all, attr.all);
    }
    if (attr.field_mask & UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT) {
        std::ranges::copy(counts.silent, attr.silent);
    }
    return UCS_OK;
}

const char* name_of(hook_state state)
{
    switch (state) {
    case hook_state::absent:
        return "not in use: the library does not support this UCX";
    case hook_state::off:
        return "off, by UCX_LAYOUT_HOOKS";
    case hook_state::unknown:
        return "not in use: this UCX has another object";
    case hook_state::active:
        return "in use";
    }
    return "";
}

std::string place_of(const char* symbol)
{
    const void* const address = dlsym(RTLD_DEFAULT, symbol);
    Dl_info info{};
    if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
        return "nowhere: no such symbol";
    }
    return std::format("{} in {}", symbol, info.dli_fname);
}

std::string describe(const hook& shown)
{
    return std::format("{}\n    state    {}\n    changes  {}\n    so that  {}\n    without  {}\n", shown.name,
                       name_of(shown.state), place_of(shown.symbol), shown.purpose, shown.without);
}

} // namespace

ucs_status_t ucp_layout_failure_query(pid_t pid, ucp_layout_failure_attr_t* attr)
{
    return checked(__func__, {{"attr", attr}}, [&] { return query(pid, *attr); });
}

ucs_status_t ucp_layout_failure_watch(ucp_layout_failure_cb_t cb, void* arg)
{
    return guarded(__func__, [&] {
        {
            watcher& watching = the_watcher();
            const std::lock_guard guard(watching.lock);
            watching.callback = cb;
            watching.arg      = arg;
        }
        watch_failures(tell, nullptr);
        return UCS_OK;
    });
}

ucs_status_t ucp_layout_print_hooks(FILE* stream)
{
    return checked(__func__, {{"stream", stream}}, [&] {
        std::string text;
        for (const hook& each : all_hooks()) {
            text += describe(each);
        }
        if (std::fputs(text.c_str(), stream) < 0) {
            ucs_error("ucp_layout_print_hooks: writing failed: %m");
            return UCS_ERR_IO_ERROR;
        }
        return UCS_OK;
    });
}
