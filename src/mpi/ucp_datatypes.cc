#include "ucp_datatypes.h"

#include "handle_table.h"
#include "implementation.h"
#include "library.h"
#include "settings.h"
#include "type_table.h"
#include "ucx_function.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <ucp_layout.h>

namespace ucxl::mpi
{

namespace
{

std::atomic<bool> is_used{false};
// Of the message by which start() finds out.
std::atomic<MPI_Datatype> tried_type{MPI_DATATYPE_NULL};
std::atomic<bool> was_seen{false};
// What Open MPI and layouts pack and unpack with. Written before `is_used`.
ucp_generic_dt_ops_t by_mpi, by_layout;

// The handle of a datatype of Open MPI is its address. Other handles are numbers.
template <typename Handle = MPI_Datatype>
Handle handle_of(void* context)
{
    if constexpr (std::is_pointer_v<Handle>) {
        return static_cast<Handle>(context);
    } else {
        return MPI_DATATYPE_NULL;
    }
}

// Null if MPI shall move these elements. The datatype may be one that MPI made for itself and that has no constructor,
// so nothing is asked of it.
void* layout_context(void* context) noexcept
{
    known_type* const known = is_used.load(std::memory_order_relaxed) ? find_known(handle_of(context)) : nullptr;
    return known == nullptr ? nullptr : known->layout_context();
}

// States are addresses, so one bit tells those of layouts.
constexpr std::uintptr_t layout_bit = 1;

void* marked(void* state)
{
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(state) | layout_bit);
}

bool is_of_layout(void* state)
{
    return (reinterpret_cast<std::uintptr_t>(state) & layout_bit) != 0;
}

const ucp_generic_dt_ops_t& operations_of(void* state)
{
    return is_of_layout(state) ? by_layout : by_mpi;
}

void* unmarked(void* state)
{
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(state) & ~layout_bit);
}

// A datatype of UCX, and the datatype of Open MPI that it is for at present.
struct reused_datatype {
    std::atomic<void*> context{nullptr};
    ucp_datatype_t value = 0;
};

void* context_of(void* reused)
{
    return static_cast<reused_datatype*>(reused)->context.load(std::memory_order_relaxed);
}

void* start_pack(void* reused, const void* buffer, std::size_t count)
{
    void* const context = context_of(reused);
    void* const layout  = layout_context(context);
    return layout == nullptr ? by_mpi.start_pack(context, buffer, count)
                             : marked(by_layout.start_pack(layout, buffer, count));
}

void* start_unpack(void* reused, void* buffer, std::size_t count)
{
    void* const context = context_of(reused);
    void* const layout  = layout_context(context);
    return layout == nullptr ? by_mpi.start_unpack(context, buffer, count)
                             : marked(by_layout.start_unpack(layout, buffer, count));
}

std::size_t packed_size(void* state)
{
    return operations_of(state).packed_size(unmarked(state));
}

std::size_t pack(void* state, std::size_t offset, void* packed, std::size_t max_length)
{
    return operations_of(state).pack(unmarked(state), offset, packed, max_length);
}

ucs_status_t unpack(void* state, std::size_t offset, const void* packed, std::size_t length)
{
    return operations_of(state).unpack(unmarked(state), offset, packed, length);
}

void finish(void* state)
{
    operations_of(state).finish(unmarked(state));
}

constexpr ucp_generic_dt_ops_t by_both = {start_pack, start_unpack, packed_size, pack, unpack, finish};

// An operation of UCX calls the functions of its datatype until it ends, but does not hold it. A program may free a
// datatype before its message has ended. Open MPI then keeps both datatypes for the states of its own functions, and
// knows nothing of those of layouts. So a datatype of UCX with these functions is not destroyed: the next one of Open
// MPI gets it. There are as many as Open MPI has had at once.
class reused_datatypes
{
public:
    // `next` makes one.
    ucs_status_t take(decltype(ucp_dt_create_generic)& next, void* context, ucp_datatype_t* datatype_p)
    try {
        reused_datatype* taken = _latest.exchange(nullptr, std::memory_order_acquire);
        if (taken == nullptr) {
            const std::lock_guard guard(_lock);
            if (_unused.empty()) {
                if (const ucs_status_t status = add(next); status != UCS_OK) {
                    return status;
                }
            }
            taken = _unused.back();
            _unused.pop_back();
        }
        taken->context.store(context, std::memory_order_relaxed);
        *datatype_p = taken->value;
        return UCS_OK;
    } catch (const std::bad_alloc&) {
        return UCS_ERR_NO_MEMORY;
    }

    // False: it is not one of these. MPICH, which has none of them, asks for each datatype that a program frees.
    bool give_back(ucp_datatype_t datatype) noexcept
    {
        reused_datatype* const found = _by_value.find(datatype);
        if (found == nullptr) {
            return false;
        }
        reused_datatype* none = nullptr;
        if (!_latest.compare_exchange_strong(none, found, std::memory_order_release, std::memory_order_relaxed)) {
            const std::lock_guard guard(_lock);
            _unused.push_back(found);
        }
        return true;
    }

private:
    // To the unused ones. Nothing can fail after UCX has made it, nor when it is given back.
    ucs_status_t add(decltype(ucp_dt_create_generic)& next)
    {
        auto made = std::make_unique<reused_datatype>();
        _all.reserve(_all.size() + 1);
        _unused.reserve(_all.size() + 1);
        _by_value.reserve();
        if (const ucs_status_t status = next(&by_both, made.get(), &made->value); status != UCS_OK) {
            return status;
        }
        _by_value.add(made->value, made.get());
        _unused.push_back(made.get());
        _all.push_back(std::move(made));
        return UCS_OK;
    }

    // The one that was given back last. Programs that make a datatype for each message take it again, without the lock.
    std::atomic<reused_datatype*> _latest{nullptr};
    handle_table<ucp_datatype_t, reused_datatype> _by_value;
    std::mutex _lock;
    std::vector<std::unique_ptr<reused_datatype>> _all;
    std::vector<reused_datatype*> _unused;
};

// Never destroyed: destructors that run later may free datatypes.
union undestroyed_datatypes {
    constexpr undestroyed_datatypes() : all() {}
    ~undestroyed_datatypes() {}
    reused_datatypes all;
};
constinit undestroyed_datatypes kept_datatypes;

// Open MPI makes a datatype of UCX for each of its own at the first message, with the handle as the context. Others in
// the process may make theirs.
ucs_status_t create(decltype(ucp_dt_create_generic)& next, const ucp_generic_dt_ops_t* operations, void* context,
                    ucp_datatype_t* datatype_p)
{
    if (is_used.load(std::memory_order_acquire)) {
        return operations->start_pack == by_mpi.start_pack ? kept_datatypes.all.take(next, context, datatype_p)
                                                           : next(operations, context, datatype_p);
    }
    const MPI_Datatype tried = tried_type.load(std::memory_order_acquire);
    if (tried != MPI_DATATYPE_NULL && handle_of(context) == tried) {
        by_mpi = *operations;
        was_seen.store(true, std::memory_order_release);
    }
    return next(operations, context, datatype_p);
}

bool sends_to_itself()
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (PMPI_Type_vector(2, 1, 2, MPI_BYTE, &type) != MPI_SUCCESS || PMPI_Type_commit(&type) != MPI_SUCCESS) {
        return false;
    }
    tried_type.store(type, std::memory_order_release);
    const unsigned char sent[3] = {1, 2, 3};
    unsigned char received[3]   = {};
    const int result = PMPI_Sendrecv(sent, 1, type, 0, 0, received, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    tried_type.store(MPI_DATATYPE_NULL, std::memory_order_release);
    PMPI_Type_free(&type);
    return result == MPI_SUCCESS && was_seen.load(std::memory_order_acquire);
}

bool reads_operations_of_layouts()
{
    ucp_layout_h layout     = nullptr;
    ucp_datatype_t datatype = 0;
    ucp_layout_datatype_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_DATATYPE_ATTR_FIELD_OPERATIONS;
    if (ucp_layout_strided(1, 2, 2, &layout) != UCS_OK) {
        return false;
    }
    const layout_ptr owner = owned_layout(layout);
    if (ucp_layout_datatype_create(layout, &datatype) != UCS_OK) {
        return false;
    }
    const ucs_status_t status = ucp_layout_datatype_query(datatype, &attr);
    ucp_layout_datatype_destroy(datatype);
    by_layout = attr.operations;
    return status == UCS_OK;
}

} // namespace

bool ucp_datatypes::may_be_used()
{
    return implementation_below() == implementation::openmpi && !settings::get().always_takes_windows &&
           settings::get().takes_messages;
}

void ucp_datatypes::start()
{
    // A card that carries windows moves bytes without the CPU, which no engine of datatypes does.
    if (!may_be_used() || library::has_cards() || !library::has_world()) {
        return;
    }
    is_used.store(reads_operations_of_layouts() && sends_to_itself(), std::memory_order_release);
}

void ucp_datatypes::stop()
{
    is_used.store(false, std::memory_order_release);
}

bool ucp_datatypes::are_used()
{
    return is_used.load(std::memory_order_acquire);
}

} // namespace ucxl::mpi

extern "C" [[gnu::visibility("default")]] ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t* operations,
                                                                             void* context, ucp_datatype_t* datatype_p)
{
    static constinit ucxl::mpi::kept_ucx_function<decltype(ucp_dt_create_generic)> behind;
    const auto next = behind.get(ucp_dt_create_generic, "ucp_dt_create_generic", __builtin_return_address(0));
    return next == nullptr ? UCS_ERR_UNSUPPORTED : ucxl::mpi::create(*next, operations, context, datatype_p);
}

extern "C" [[gnu::visibility("default")]] void ucp_dt_destroy(ucp_datatype_t datatype)
{
    if (ucxl::mpi::kept_datatypes.all.give_back(datatype)) {
        return;
    }
    static constinit ucxl::mpi::kept_ucx_function<decltype(ucp_dt_destroy)> behind;
    if (const auto next = behind.get(ucp_dt_destroy, "ucp_dt_destroy", __builtin_return_address(0)); next != nullptr) {
        next(datatype);
    }
}
