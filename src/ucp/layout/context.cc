#include "context.h"

#include "decision.h"
#include "map_state.h"
#include "ucp_layout_context.h"

#include "abi/component.h"
#include "abi/config.h"
#include "abi/log.h"
#include "abi/ucx.h"
#include "abi/window_types.h"
#include "sys/fork.h"
#include "ucs/layout/build.h"
#include "ucs/sys/argument.h"
#include "ucs/window/arena.h"
#include "ucs/window/window.h"
#include "uct/layout/init.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <format>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace ucxl
{

namespace
{

using watch_ptr = std::shared_ptr<const ucp_layout_context_watch_params_t>;

struct kept_watch {
    std::mutex lock;
    watch_ptr current;
};

kept_watch& kept()
{
    return only_one_over_fork<kept_watch>();
}

watch_ptr current_watch()
{
    const std::lock_guard guard(kept().lock);
    return kept().current;
}

constexpr const char* transports_option     = "TLS";
constexpr const char* address_format_option = "ADDRESS_VERSION";
constexpr const char* own_transport         = "lay_copy";
constexpr const char* all_own_transports    = "lay_copy,lay_shm,lay_cma";

// Also false if UCP cannot be asked.
bool has_windows(ucp_context_h context)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    const auto view = state.views.of(context);
    return view && (*view)->copying != nullptr;
}

// As far as UCX says; true if it does not.
bool has_rdma_device()
{
    const auto names = abi::components_with_domains([](const std::string& name) { return name == "ib"; });
    return !names || !names->empty();
}

// A configuration that may be changed as long as this object exists. UCX has no function that copies one, so it is
// the caller's, and the destructor gives back what it found.
class changed_config
{
public:
    explicit changed_config(const ucp_config_t* given) : _config(const_cast<ucp_config_t*>(given))
    {
        if (given == nullptr && ucp_config_read(nullptr, nullptr, &_own) == UCS_OK) {
            _config = _own;
        }
    }
    ~changed_config()
    {
        set(transports_option, _old_transports);
        set(address_format_option, _old_format);
        if (_own != nullptr) {
            ucp_config_release(_own);
        }
    }
    changed_config(const changed_config&)            = delete;
    changed_config& operator=(const changed_config&) = delete;

    // Null only if a configuration could not be read.
    const ucp_config_t* get() const { return _config; }

    void complete_transports()
    {
        const std::string set_to = value(transports_option);
        const std::string_view list(set_to);
        if (set_to.empty() || list.front() == '^' || list.starts_with("all") || list.contains(own_transport)) {
            return;
        }
        const std::string completed = set_to + "," + own_transport;
        if (set(transports_option, completed)) {
            _old_transports = set_to;
            ucs_info("UCX_TLS=%s, to which lay_copy was added", completed.c_str());
        }
    }

    // Returns false if the list asks for windows. One of other transports has none as it is.
    bool leave_out_transports()
    {
        const std::string set_to = value(transports_option);
        if (set_to.empty() || (set_to.front() != '^' && set_to.contains(own_transport))) {
            return false;
        }
        const bool is_all = set_to.starts_with("all");
        if ((is_all || set_to.front() == '^') &&
            set(transports_option, (is_all ? "^" : set_to + ",") + all_own_transports)) {
            _old_transports = set_to;
        }
        return true;
    }

    // Returns whether peers are told.
    bool tell_peers()
    {
        // A user may choose it for some processes of a job, or for some that are without this library.
        if (const std::string chosen = abi::configured_text("", address_format_option); !chosen.empty()) {
            ucs_info("UCX_ADDRESS_VERSION=%s was chosen, so peers are not told that this process has windows",
                     chosen.c_str());
            tell_peers_nothing();
            return false;
        }
        return choose_format("v2");
    }

    void tell_peers_nothing() { choose_format("v1"); }

private:
    bool choose_format(const char* format)
    {
        const std::string found = value(address_format_option);
        if (!set(address_format_option, format)) {
            return false;
        }
        if (_old_format.empty()) { // may be called twice
            _old_format = found;
        }
        return true;
    }

    bool set(const char* name, const std::string& text)
    {
        return _config != nullptr && !text.empty() && ucp_config_modify(_config, name, text.c_str()) == UCS_OK;
    }

    // As UCX prints it; empty if there is no such option, or no memory.
    std::string value(const char* name) const
    {
        char* printed      = nullptr;
        std::size_t length = 0;
        std::FILE* stream  = _config != nullptr ? open_memstream(&printed, &length) : nullptr;
        if (stream == nullptr) {
            return {};
        }
        ucp_config_print(_config, stream, nullptr, UCS_CONFIG_PRINT_CONFIG);
        std::fclose(stream);
        const std::string line_start = std::string("\nUCX_") + name + "=";
        const std::string text       = "\n" + std::string(printed, length);
        std::free(printed);
        const std::size_t found = text.find(line_start);
        if (found == text.npos) {
            return {};
        }
        const std::size_t begin = found + line_start.size();
        return text.substr(begin, text.find('\n', begin) - begin);
    }

    ucp_config_t* _own    = nullptr;
    ucp_config_t* _config = nullptr;
    std::string _old_transports;
    std::string _old_format;
};

ucs_status_t init(const ucp_layout_context_watch_params_t& watch, decltype(&ucp_init_version) next, unsigned flags,
                  unsigned major, unsigned minor, const ucp_params_t* params, const ucp_config_t* config,
                  ucp_context_h* context)
{
    changed_config changed(config);
    const bool wants_none = (flags & UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS) ||
                            ((flags & UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS) && !has_rdma_device());
    const bool is_without = wants_none && changed.leave_out_transports();
    if (!is_without && (flags & UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT)) {
        changed.complete_transports();
    }
    if ((flags & UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS) || (is_without && (flags & UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS))) {
        changed.tell_peers_nothing(); // whatever a user chose for all processes
    }
    bool tells_peers    = !is_without && (flags & UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS) && changed.tell_peers();
    ucp_context_h made  = nullptr;
    ucs_status_t status = next(major, minor, params, changed.get(), &made);
    if (status == UCS_OK && tells_peers && !has_windows(made)) {
        // The format is fixed when a context is made, and only then it is known whether it has windows.
        ucp_cleanup(made);
        changed.tell_peers_nothing();
        tells_peers = false;
        status      = next(major, minor, params, changed.get(), &made);
    }
    if (status == UCS_OK) {
        *context = made;
        if (watch.made != nullptr) {
            const unsigned not_kept =
                (tells_peers ? 0 : UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS) |
                (is_without ? 0 : UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS | UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS);
            watch.made(made, flags & ~not_kept, watch.arg);
        }
    }
    return status;
}

ucs_status_t check(const ucp_layout_context_watch_params_t& params, ucp_layout_context_watch_params_t& checked)
{
    constexpr auto name      = "ucp_layout_context_watch";
    constexpr unsigned known = UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_CHOOSE | UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_MADE |
                               UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_ARG;
    if (const auto status = check_field_mask(name, params.field_mask, known); status != UCS_OK) {
        return status;
    }
    const auto has = [&](unsigned field) { return (params.field_mask & field) != 0; };
    if (!has(UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_CHOOSE) || params.choose == nullptr) {
        return log_invalid_param(name, "choose is required");
    }
    checked        = {};
    checked.choose = params.choose;
    checked.made   = has(UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_MADE) ? params.made : nullptr;
    checked.arg    = has(UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_ARG) ? params.arg : nullptr;
    return UCS_OK;
}

ucs_status_t watch(const ucp_layout_context_watch_params_t* params)
{
    auto made = params != nullptr ? std::make_shared<ucp_layout_context_watch_params_t>() : nullptr;
    if (params != nullptr) {
        if (const auto status = check(*params, *made); status != UCS_OK) {
            return status;
        }
    }
    const std::lock_guard guard(kept().lock);
    kept().current = std::move(made);
    return UCS_OK;
}

// Plans for a window without making it, if there are devices.
result<ucp_layout_carrier_t> carrier_in(const context_view& view)
{
    if (keys_in(view) == nullptr) {
        return UCP_LAYOUT_CARRIER_COPIES;
    }
    constexpr std::size_t block = 4096, number = 4;
    std::vector<std::byte> memory(2 * block * number);
    const dim blocks{number, 2 * block};
    const auto shape = UCXL_TRY(make_strided({.length = block, .nested = nullptr}, std::span(&blocks, 1)));
    auto plan        = UCXL_TRY(pack_plan::compile(shape));
    const auto made  = UCXL_TRY(decide(view, {std::move(plan), {memory.data()}}));
    return made.carrier == window_carrier::keys ? UCP_LAYOUT_CARRIER_KEYS : UCP_LAYOUT_CARRIER_COPIES;
}

// With the margins, in which there is nothing.
result<std::span<std::byte>> addresses_of_windows()
{
    auto& registry = window_registry::instance();
    UCXL_TRY(registry.reserve());
    return std::span(registry.arena_base() - arena::margin, registry.arena_length() + 2 * arena::margin);
}

result<std::uint64_t> other_memory_types(ucp_context_h context)
{
    ucp_context_attr_t attr{};
    attr.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    if (const ucs_status_t status = ucp_context_query(context, &attr); status != UCS_OK) {
        return fail(errc::io_error,
                    std::format("UCP does not tell its memory types (status {})", static_cast<int>(status)));
    }
    return attr.memory_types & ~(UCS_BIT(UCS_MEMORY_TYPE_HOST) | abi::types_of_windows().own());
}

ucs_status_t query(ucp_context_h context, ucp_layout_context_attr_t& attr)
{
    constexpr auto name      = "ucp_layout_context_query";
    constexpr unsigned known = UCP_LAYOUT_CONTEXT_ATTR_FIELD_CARRIER | UCP_LAYOUT_CONTEXT_ATTR_FIELD_ADDRESSES |
                               UCP_LAYOUT_CONTEXT_ATTR_FIELD_MEMORY_TYPES;
    if (const auto status = check_field_mask(name, attr.field_mask, known); status != UCS_OK) {
        return status;
    }
    if (!uct_layout_init()) {
        return UCS_ERR_NO_DEVICE;
    }
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    const auto view = state.views.of(context);
    if (!view || (*view)->copying == nullptr) {
        return view ? UCS_ERR_NO_DEVICE : log_error(name, view.error());
    }
    const auto has = [&](unsigned field) { return (attr.field_mask & field) != 0; };
    result<ucp_layout_carrier_t> carrier{};
    result<std::span<std::byte>> addresses{};
    result<std::uint64_t> types{};
    if (has(UCP_LAYOUT_CONTEXT_ATTR_FIELD_CARRIER) && !(carrier = carrier_in(**view))) {
        return log_error(name, carrier.error());
    }
    if (has(UCP_LAYOUT_CONTEXT_ATTR_FIELD_ADDRESSES) && !(addresses = addresses_of_windows())) {
        return log_error(name, addresses.error());
    }
    if (has(UCP_LAYOUT_CONTEXT_ATTR_FIELD_MEMORY_TYPES) && !(types = other_memory_types(context))) {
        return log_error(name, types.error());
    }
    // Only what was asked for: programs that were built before know fewer fields.
    if (has(UCP_LAYOUT_CONTEXT_ATTR_FIELD_CARRIER)) {
        attr.carrier = *carrier;
    }
    if (has(UCP_LAYOUT_CONTEXT_ATTR_FIELD_ADDRESSES)) {
        attr.address = addresses->data();
        attr.length  = addresses->size();
    }
    if (has(UCP_LAYOUT_CONTEXT_ATTR_FIELD_MEMORY_TYPES)) {
        attr.memory_types = *types;
    }
    return UCS_OK;
}

ucs_status_t query_option(const char* name, char* value, std::size_t length)
{
    if (abi::attached() == nullptr) {
        return UCS_ERR_NO_DEVICE;
    }
    const std::string text = abi::configured_text("", name);
    if (text.empty()) {
        return UCS_ERR_NO_ELEM;
    }
    if (text.size() >= length) {
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    std::memcpy(value, text.c_str(), text.size() + 1);
    return UCS_OK;
}

} // namespace

ucs_status_t init_watched_context(decltype(&ucp_init_version) next, const void* caller, unsigned major, unsigned minor,
                                  const ucp_params_t* params, const ucp_config_t* config,
                                  ucp_context_h* context) noexcept
{
    const watch_ptr watch = current_watch();
    const unsigned flags  = watch != nullptr ? watch->choose(caller, watch->arg) : 0;
    if (flags == 0) {
        return next(major, minor, params, config, context);
    }
    return guarded("ucp_init", [&] { return init(*watch, next, flags, major, minor, params, config, context); });
}

} // namespace ucxl

using namespace ucxl;

ucs_status_t ucp_layout_context_query(ucp_context_h context, ucp_layout_context_attr_t* attr)
{
    return checked(__func__, {{"context", context}, {"attr", attr}}, [&] { return query(context, *attr); });
}

ucs_status_t ucp_layout_context_watch(const ucp_layout_context_watch_params_t* params)
{
    return checked(__func__, {}, [&] { return watch(params); });
}

ucs_status_t ucp_layout_option_query(const char* name, char* value, size_t length)
{
    return checked(__func__, {{"name", name}, {"value", value}}, [&] { return query_option(name, value, length); });
}
