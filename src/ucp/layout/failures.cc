// ucp_layout_failure_query, ucp_layout_failure_watch and ucp_layout_print_hooks.
#include "sys/fork.h"
#include "ucp_layout_failure.h"
#include "ucs/sys/argument.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/messages/hooks.h"

#include <array>
#include <cstring>
#include <format>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include <dlfcn.h>

using namespace ucxl;

namespace
{

constexpr std::size_t first_kind = UCP_LAYOUT_FAILURE_ANY + 1;

constexpr ucp_layout_failure_kind_t to_c(failure_kind kind)
{
    return static_cast<ucp_layout_failure_kind_t>(std::to_underlying(kind) + first_kind);
}

static_assert(to_c(failure_kind::read) == UCP_LAYOUT_FAILURE_READ);
static_assert(to_c(failure_kind::peer_read) == UCP_LAYOUT_FAILURE_PEER_READ);
static_assert(to_c(failure_kind::remote_atomic) == UCP_LAYOUT_FAILURE_REMOTE_ATOMIC);
static_assert(to_c(failure_kind::datatype) == UCP_LAYOUT_FAILURE_DATATYPE);
static_assert(UCP_LAYOUT_FAILURE_DATATYPE == num_failure_kinds);

constexpr std::uint64_t known_fields = UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL | UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT;
constexpr std::uint64_t all_members  = UCP_LAYOUT_FAILURE_FIELD_KIND | UCP_LAYOUT_FAILURE_FIELD_SILENT |
                                      UCP_LAYOUT_FAILURE_FIELD_ADDRESS | UCP_LAYOUT_FAILURE_FIELD_LENGTH |
                                      UCP_LAYOUT_FAILURE_FIELD_OPERATION | UCP_LAYOUT_FAILURE_FIELD_REASON;

struct watcher {
    std::mutex lock;
    ucp_layout_failure_cb_t callback = nullptr;
    void* arg                        = nullptr;
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
                                     .kind       = to_c(told.kind),
                                     .silent     = told.silent ? 1 : 0,
                                     .address    = told.address,
                                     .length     = static_cast<std::size_t>(told.length),
                                     .operation  = told.operation,
                                     .reason     = told.reason};
    callback(&shown, arg);
}

using counts_by_kind = std::array<std::uint64_t, num_failure_kinds>;

std::uint64_t count(const counts_by_kind& counts, int kind)
{
    return kind == UCP_LAYOUT_FAILURE_ANY ? std::accumulate(counts.begin(), counts.end(), std::uint64_t{0})
                                          : counts[static_cast<std::size_t>(kind) - first_kind];
}

// `kind` as a number: a C caller may pass any, and reading an unknown one as an enumeration is undefined.
ucs_status_t query(pid_t pid, int kind, ucp_layout_failure_attr_t& attr)
{
    constexpr auto name = "ucp_layout_failure_query";
    if (const auto status = check_field_mask(name, attr.field_mask, known_fields); status != UCS_OK) {
        return status;
    }
    if (kind < UCP_LAYOUT_FAILURE_ANY || kind > UCP_LAYOUT_FAILURE_DATATYPE) {
        return log_invalid_param(name, std::format("kind {} is unknown, the last one is {}", kind,
                                                   std::to_underlying(UCP_LAYOUT_FAILURE_DATATYPE)));
    }
    failure_counts counts;
    if (pid == 0) {
        counts = count_failures();
    } else if (!count_failures_of(pid, counts)) {
        ucs_error("ucp_layout_failure_query: process %d does not exist, cannot be inspected by this process, or has "
                  "not loaded this release of the library",
                  static_cast<int>(pid));
        return UCS_ERR_NO_ELEM;
    }
    if (attr.field_mask & UCP_LAYOUT_FAILURE_ATTR_FIELD_ALL) {
        attr.all = count(counts.all, kind);
    }
    if (attr.field_mask & UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT) {
        attr.silent = count(counts.silent, kind);
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

ucs_status_t ucp_layout_failure_query(pid_t pid, ucp_layout_failure_kind_t kind, ucp_layout_failure_attr_t* attr)
{
    int number;
    static_assert(sizeof(number) == sizeof(kind));
    std::memcpy(&number, &kind, sizeof(number));
    return checked(__func__, {{"attr", attr}}, [&] { return query(pid, number, *attr); });
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
        if (std::fputs(text.c_str(), stream) < 0 || std::fflush(stream) != 0) {
            ucs_error("ucp_layout_print_hooks: writing failed: %m");
            return UCS_ERR_IO_ERROR;
        }
        return UCS_OK;
    });
}
