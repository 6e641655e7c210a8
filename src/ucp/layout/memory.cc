// ucp_layout_memory_*: the handles of regions.
#include "heap_regions.h"
#include "numbered_handle.h"
#include "ucp_layout.h"

#include "sys/fork.h"
#include "ucs/sys/argument.h"
#include "ucs/window/window.h"
#include "ucs/window/window_config.h"
#include "uct/layout/init.h"
#include "uct/layout/peer/export.h"

#include <bit>
#include <format>
#include <map>
#include <mutex>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields = UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH | UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS |
                                       UCP_LAYOUT_MEMORY_PARAM_FIELD_FD | UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET |
                                       UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS | UCP_LAYOUT_MEMORY_PARAM_FIELD_HUGE_PAGES |
                                       UCP_LAYOUT_MEMORY_PARAM_FIELD_ALIGNMENT |
                                       UCP_LAYOUT_MEMORY_PARAM_FIELD_NUMA_NODE;
constexpr std::uint64_t known_attributes = UCP_LAYOUT_MEMORY_ATTR_FIELD_ADDRESS | UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH;

struct held_memory {
    region_ptr held;
    std::byte* start     = nullptr;
    std::uint64_t length = 0;
    bool is_of_caller    = false; // and not of the library or of the heap
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

    void remove(ucp_layout_memory_h memory) noexcept
    {
        const std::lock_guard guard(_lock);
        _all.erase(memory);
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

constexpr auto create_name = "ucp_layout_memory_create";

bool has(const ucp_layout_memory_params_t& params, std::uint64_t field)
{
    return (params.field_mask & field) != 0;
}

bool is_to_move(const ucp_layout_memory_params_t& params)
{
    return has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS) && (params.flags & UCP_LAYOUT_MEMORY_FLAG_MOVE) != 0;
}

// Which fields go together.
const char* contradiction(const ucp_layout_memory_params_t& params)
{
    const bool has_address = has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS);
    const bool has_fd      = has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_FD);
    if (has_fd && !has_address) {
        return "fd is set, and address is not: the memory is a shared mapping of the file";
    }
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET) && !has_fd) {
        return "offset is set, and fd is not";
    }
    if (is_to_move(params) && (!has_address || has_fd)) {
        return "UCP_LAYOUT_MEMORY_FLAG_MOVE needs address, and no fd: the memory is private";
    }
    if (has_address && has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_ALIGNMENT | UCP_LAYOUT_MEMORY_PARAM_FIELD_NUMA_NODE)) {
        return "alignment and numa_node are of memory that the library allocates, and address is set";
    }
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_HUGE_PAGES) && has_address && !is_to_move(params)) {
        return "huge_pages is of memory that the library allocates or moves, and address is set";
    }
    return nullptr;
}

ucs_status_t check(const ucp_layout_memory_params_t& params)
{
    constexpr std::size_t max_alignment = std::size_t{1} << 40;
    constexpr int max_node              = 1023;
    if (const auto status = check_field_mask(create_name, params.field_mask, known_fields); status != UCS_OK) {
        return status;
    }
    if (!has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_LENGTH) || params.length == 0 ||
        params.length > limits::max_length) {
        return log_invalid_param(create_name,
                                 std::format("length is required, from 1 to {} bytes", limits::max_length));
    }
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_FLAGS) && (params.flags & ~UCP_LAYOUT_MEMORY_FLAG_MOVE) != 0) {
        return log_invalid_param(create_name, std::format("flags has unknown bits {:#x}", params.flags));
    }
    if (const char* const reason = contradiction(params)) {
        return log_invalid_param(create_name, reason);
    }
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_HUGE_PAGES) &&
        (params.huge_pages > UCP_LAYOUT_HUGE_PAGES_ALWAYS ||
         (params.huge_pages == UCP_LAYOUT_HUGE_PAGES_ALWAYS && is_to_move(params)))) {
        return log_invalid_param(create_name, std::format("huge_pages is {}", static_cast<int>(params.huge_pages)));
    }
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_ALIGNMENT) &&
        (!std::has_single_bit(params.alignment) || params.alignment > max_alignment)) {
        return log_invalid_param(create_name, std::format("alignment is {}, and has to be a power of two up to {}",
                                                          params.alignment, max_alignment));
    }
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_NUMA_NODE) && (params.numa_node < 0 || params.numa_node > max_node)) {
        return log_invalid_param(create_name, std::format("numa_node is {}, of 0 to {}", params.numa_node, max_node));
    }
    return UCS_OK;
}

// If the caller does not say, what the options of UCX say; without UCX, what they say by default.
result<huge_pages_option> huge_pages_of(const ucp_layout_memory_params_t& params)
{
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_HUGE_PAGES)) {
        return static_cast<huge_pages_option>(params.huge_pages);
    }
    if (!uct_layout_init()) {
        return huge_pages_option::possible;
    }
    return read_window_config().transform(
        [](const window_config& config) { return static_cast<huge_pages_option>(config.huge_pages); });
}

static_assert(static_cast<int>(huge_pages_option::possible) == UCP_LAYOUT_HUGE_PAGES_TRY &&
              static_cast<int>(huge_pages_option::never) == UCP_LAYOUT_HUGE_PAGES_NEVER &&
              static_cast<int>(huge_pages_option::always) == UCP_LAYOUT_HUGE_PAGES_ALWAYS);

result<region_ptr> make_region(const ucp_layout_memory_params_t& params)
{
    auto* const address = static_cast<std::byte*>(params.address);
    if (!has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS)) {
        region_options options{.huge_pages = UCXL_TRY(huge_pages_of(params))};
        if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_ALIGNMENT)) {
            options.alignment = params.alignment;
        }
        if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_NUMA_NODE)) {
            options.numa_node = params.numa_node;
        }
        return region::allocate(params.length, options);
    }
    if (is_to_move(params)) {
        return region::move(address, params.length, UCXL_TRY(huge_pages_of(params)));
    }
    if (!has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_FD)) {
        return region::share(address, params.length);
    }
    return region::share(address, params.length, params.fd,
                         has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_OFFSET) ? params.offset : 0);
}

result<held_memory> make(const ucp_layout_memory_params_t& params)
{
    if (has(params, UCP_LAYOUT_MEMORY_PARAM_FIELD_ADDRESS)) {
        if (auto shared = region_of_heap(params.address, params.length)) {
            return held_memory{std::move(shared), static_cast<std::byte*>(params.address), params.length};
        }
    }
    auto made = UCXL_TRY(make_region(params));
    UCXL_TRY(region_table::instance().add(made));
    std::byte* const start     = made->start();
    const std::uint64_t length = made->length();
    const bool is_of_caller    = made->origin() != region_origin::library;
    return held_memory{std::move(made), start, length, is_of_caller};
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
            return log_error(create_name, made.error());
        }
        *memory_p = memory_table::instance().add(std::move(*made));
        return UCS_OK;
    });
}

ucs_status_t ucp_layout_memory_destroy(ucp_layout_memory_h memory)
{
    return checked(__func__, {{"memory", memory}}, [&] {
        const held_memory ended = memory_table::instance().find("ucp_layout_memory_destroy", memory);
        if (ended.held == nullptr) {
            return UCS_ERR_INVALID_PARAM;
        }
        // Any of it may find no memory, and all of it can be done again: the handle stays until the end.
        if (ended.is_of_caller) {
            region_table::instance().remove(*ended.held);
            for (const std::byte* const address : window_registry::instance().windows_over(*ended.held)) {
                withdraw_exported_window(address);
            }
        }
        memory_table::instance().remove(memory);
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
            attr->address = found.start;
        }
        if ((attr->field_mask & UCP_LAYOUT_MEMORY_ATTR_FIELD_LENGTH) != 0) {
            attr->length = found.length;
        }
        return UCS_OK;
    });
}
