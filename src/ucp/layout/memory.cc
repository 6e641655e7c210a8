// ucp_layout_memory_*: the handles of regions.
#include "numbered_handle.h"
#include "ucp_layout.h"

#include "sys/fork.h"
#include "ucs/sys/argument.h"
#include "ucs/window/window.h"
#include "ucs/window/window_config.h"
#include "uct/layout/init.h"
#include "uct/layout/peer/export.h"

#include <format>
#include <map>
#include <mutex>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH | UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS |
                                       UCP_LAYOUT_MEMORY_PARAM_FIELD_FD | UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET;
constexpr std::uint64_t known_attributes = UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS | UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH;

struct held_memory {
    region_ptr held;
    bool is_of_caller;
};

class memory_table
{
public:
    static memory_table& instance()
    {
        static memory_table& only = *[] {
            region_table::instance(); // fork takes its lock after this one
            auto* const made = new memory_table;
            hold_over_fork<[]() -> std::mutex& { return instance()._lock; }>();
            return made;
        }();
        return only;
    }

    // Throws std::bad_alloc.
    ucp_layout_memory_h add(held_memory added)
    {
        const std::lock_guard guard(_lock);
        const auto handle = numbered_handle<ucp_layout_memory_h>(_last);
        _all.emplace(handle, std::move(added));
        ++_last;
        return handle;
    }

    // Nothing in it, and an error was logged, if it is no handle.
    held_memory find(const char* function, ucp_layout_memory_h memory) const
    {
        const std::lock_guard guard(_lock);
        const auto found = _all.find(memory);
        return found != _all.end() ? found->second : refuse(function, memory);
    }

    held_memory remove(const char* function, ucp_layout_memory_h memory)
    {
        const std::lock_guard guard(_lock);
        const auto found = _all.extract(memory);
        return found ? std::move(found.mapped()) : refuse(function, memory);
    }

private:
    static held_memory refuse(const char* function, ucp_layout_memory_h memory)
    {
        ucs_error("%s: memory %p is no handle of shared memory, or was released", function, static_cast<void*>(memory));
        return {};
    }

    mutable std::mutex _lock;
    std::map<ucp_layout_memory_h, held_memory> _all;
    std::uintptr_t _last = 0;
};

ucs_status_t check(const ucp_layout_memory_params_t& params)
{
    constexpr auto name = "ucp_layout_memory_create";
    const auto is_set   = [&](std::uint64_t field) { return (params.field_mask & field) != 0; };
    if (const auto status = check_field_mask(name, params.field_mask, known_fields); status != UCS_OK) {
        return status;
    }
    if (!is_set(UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH) || params.length == 0 || params.length > limits::max_length) {
        return log_invalid_param(name, std::format("length is required, from 1 to {} bytes", limits::max_length));
    }
    if (is_set(UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS) != is_set(UCP_LAYOUT_MEMORY_PARAM_FIELD_FD)) {
        return log_invalid_param(name, "address and fd go together: the memory is a shared mapping of the file");
    }
    if (is_set(UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET) && !is_set(UCP_LAYOUT_MEMORY_PARAM_FIELD_FD)) {
        return log_invalid_param(name, "offset is set, and fd is not");
    }
    return UCS_OK;
}

// What the options of UCX say; without UCX, what they say by default.
result<huge_pages_option> huge_pages()
{
    if (!uct_layout_init()) {
        return huge_pages_option::possible;
    }
    return read_window_config().transform(
        [](const window_config& config) { return static_cast<huge_pages_option>(config.huge_pages); });
}

result<held_memory> make(const ucp_layout_memory_params_t& params)
{
    const bool is_of_caller = (params.field_mask & UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS) != 0;
    region_ptr made;
    if (is_of_caller) {
        const bool has_offset = (params.field_mask & UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET) != 0;
        made = UCXL_TRY(region::share(static_cast<std::byte*>(params.address), params.length, params.fd,
                                      has_offset ? params.offset : 0));
    } else {
        const huge_pages_option pages = UCXL_TRY(huge_pages());
        made                          = UCXL_TRY(region::allocate(params.length, pages));
    }
    UCXL_TRY(region_table::instance().add(made));
    return held_memory{std::move(made), is_of_caller};
}

} // namespace

ucs_status_t ucp_layout_memory_create(const ucp_layout_memory_params_t* params, ucp_layout_memory_h* memory_p)
{
    return checked(__func__, {{"params", params}, {"memory_p", memory_p}}, [&] {
        if (const auto status = check(*params); status != UCS_OK) {
            return status;
        }
        auto made = make(*params);
        if (!made) {
            return log_error("ucp_layout_memory_create", made.error());
        }
        *memory_p = memory_table::instance().add(std::move(*made));
        return UCS_OK;
    });
}

ucs_status_t ucp_layout_memory_destroy(ucp_layout_memory_h memory)
{
    return checked(__func__, {{"memory", memory}}, [&] {
        const held_memory ended = memory_table::instance().remove("ucp_layout_memory_destroy", memory);
        if (ended.held == nullptr) {
            return UCS_ERR_INVALID_PARAM;
        }
        if (ended.is_of_caller) {
            ended.held->withdraw();
            for (const std::byte* const address : window_registry::instance().windows_over(*ended.held)) {
                withdraw_exported_window(address);
            }
        }
        return UCS_OK;
    });
}

ucs_status_t ucp_layout_memory_query(ucp_layout_memory_h memory, ucp_layout_memory_attr_t* attr)
{
    return checked(__func__, {{"memory", memory}, {"attr", attr}}, [&] {
        if (const auto status = check_field_mask("ucp_layout_memory_query", attr->field_mask, known_attributes);
            status != UCS_OK) {
            return status;
        }
        const held_memory found = memory_table::instance().find("ucp_layout_memory_query", memory);
        if (found.held == nullptr) {
            return UCS_ERR_INVALID_PARAM;
        }
        if ((attr->field_mask & UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS) != 0) {
            attr->address = found.held->start();
        }
        if ((attr->field_mask & UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH) != 0) {
            attr->length = found.held->length();
        }
        return UCS_OK;
    });
}
