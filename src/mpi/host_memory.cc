#include "host_memory.h"

#include "call_table.h"
#include "function_slots.h"
#include "library.h"
#include "settings.h"

#include "sys/search_order.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <link.h>
#include <string_view>
#include <ucp_layout.h>

namespace ucxl::mpi
{

namespace
{

// Where windows are. Everywhere, as long as it is not known.
struct addresses {
    std::atomic<std::uintptr_t> start{0};
    std::atomic<std::size_t> length{SIZE_MAX};
};
constinit addresses of_windows;

bool is_window(const void* buffer)
{
    const std::size_t length = of_windows.length.load(std::memory_order_acquire); // the start is there before
    return reinterpret_cast<std::uintptr_t>(buffer) - of_windows.start.load(std::memory_order_relaxed) < length;
}

// Those that every release has. Another field may lie behind what is copied.
constexpr std::uint32_t known_fields =
    UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |
    UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_RECV_INFO | UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FLAG_FAST_CMPL |
    UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FLAG_MULTI_SEND;

// The parameters of a message with the type of its memory, if that is known.
class told_params
{
public:
    told_params(const void* buffer, const ucp_request_param_t* given) : _given(given)
    {
        const std::uint32_t mask = given->op_attr_mask;
        if ((mask & ~known_fields) == 0 && !is_window(buffer) &&
            ((mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0 || (given->datatype & UCP_DATATYPE_CLASS_MASK) == 0)) {
            _told = *given;
            _told.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
            _told.memory_type = UCS_MEMORY_TYPE_HOST;
            _given            = &_told;
        }
    }
    told_params(const told_params&)            = delete;
    told_params& operator=(const told_params&) = delete;

    const ucp_request_param_t* get() const { return _given; }

private:
    const ucp_request_param_t* _given;
    ucp_request_param_t _told;
};
static_assert(UCP_DATATYPE_CONTIG == 0);

// UCX's own ones, or those of a tool.
constinit std::atomic<decltype(&ucp_tag_send_nbx)> next_send{nullptr};
constinit std::atomic<decltype(&ucp_tag_send_sync_nbx)> next_send_sync{nullptr};
constinit std::atomic<decltype(&ucp_tag_recv_nbx)> next_receive{nullptr};

template <auto& next>
ucs_status_ptr_t send(ucp_ep_h endpoint, const void* buffer, std::size_t count, ucp_tag_t tag,
                      const ucp_request_param_t* param)
{
    const told_params told(buffer, param);
    return next.load(std::memory_order_relaxed)(endpoint, buffer, count, tag, told.get());
}

ucs_status_ptr_t receive(ucp_worker_h worker, void* buffer, std::size_t count, ucp_tag_t tag, ucp_tag_t tag_mask,
                         const ucp_request_param_t* param)
{
    const told_params told(buffer, param);
    return next_receive.load(std::memory_order_relaxed)(worker, buffer, count, tag, tag_mask, told.get());
}

// What MPI calls must be one function in all slots. If the linker has not resolved a slot yet, it holds an address of
// MPI itself, and stays.
template <typename Function>
void change(std::uintptr_t slot, Function own, std::atomic<Function>& next)
{
    const auto found    = *reinterpret_cast<const Function*>(slot);
    const auto* address = reinterpret_cast<const void*>(found);
    Function none       = nullptr;
    if (found != own && start_of(address) != start_of(reinterpret_cast<const void*>(slot)) &&
        (next.compare_exchange_strong(none, found) || none == found)) {
        write_slot(slot, reinterpret_cast<void*>(own));
    }
}

void change_slot(std::string_view function, std::uintptr_t slot)
{
    if (function == "ucp_tag_send_nbx") {
        change(slot, &send<next_send>, next_send);
    } else if (function == "ucp_tag_send_sync_nbx") {
        change(slot, &send<next_send_sync>, next_send_sync);
    } else if (function == "ucp_tag_recv_nbx") {
        change(slot, &receive, next_receive);
    }
}

// Of the functions above. Found first and changed later, because the linker's lists are locked as long as they are
// read.
struct found_slots {
    struct one {
        const char* name;
        std::uintptr_t address;
    };
    std::array<one, 16> all{};
    std::size_t number = 0;
};

void note_slot(const char* name, std::uintptr_t slot, void* to_fill)
{
    auto& found = *static_cast<found_slots*>(to_fill);
    if (std::string_view(name).starts_with("ucp_tag_") && found.number < found.all.size()) {
        found.all[found.number++] = {name, slot};
    }
}

// Open MPI may have its component for UCX in a file of its own.
int find_slots_of_mpi(dl_phdr_info* object, std::size_t /*size*/, void* to_fill)
{
    const std::string_view path(object->dlpi_name == nullptr ? "" : object->dlpi_name);
    if (path == file_of_mpi() || path.ends_with("/mca_pml_ucx.so")) {
        visit_slots(*object, note_slot, to_fill);
    }
    return 0;
}

} // namespace

void host_memory::start(ucp_context_h context)
{
    ucp_layout_context_attr_t attr{};
    attr.field_mask     = UCP_LAYOUT_CONTEXT_ATTR_FIELD_ADDRESSES | UCP_LAYOUT_CONTEXT_ATTR_FIELD_MEMORY_TYPES;
    const bool is_known = context != nullptr && !library::has_cards() &&
                          ucp_layout_context_query(context, &attr) == UCS_OK && attr.memory_types == 0;
    of_windows.length.store(SIZE_MAX, std::memory_order_relaxed);
    if (is_known) {
        of_windows.start.store(reinterpret_cast<std::uintptr_t>(attr.address), std::memory_order_relaxed);
        of_windows.length.store(attr.length, std::memory_order_release);
        found_slots found;
        dl_iterate_phdr(find_slots_of_mpi, &found);
        for (std::size_t i = 0; i < found.number; ++i) {
            change_slot(found.all[i].name, found.all[i].address);
        }
        log_info("UCX is told that buffers are host memory");
    }
}

} // namespace ucxl::mpi
