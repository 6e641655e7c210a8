#include "ucp_datatypes.h"

#include "implementation.h"
#include "library.h"
#include "settings.h"
#include "type_table.h"
#include "ucx_function.h"

#include <atomic>
#include <mutex>
#include <new>
#include <type_traits>
#include <unordered_set>

#include <ucp_layout.h>

namespace ucxl::mpi
{

namespace
{

std::atomic<bool> is_used{false};
// Of the message by which start() finds out.
std::atomic<MPI_Datatype> tried_type{MPI_DATATYPE_NULL};
std::atomic<bool> was_seen{false};

// Datatypes made here, of which UCX does not know that they are not Open MPI's.
struct made_datatypes {
    std::mutex lock;
    std::unordered_set<ucp_datatype_t> all;

    static made_datatypes& instance()
    {
        static auto& only = *new made_datatypes;
        return only;
    }
};

bool note_made(ucp_datatype_t datatype) noexcept
{
    try {
        auto& made = made_datatypes::instance();
        const std::lock_guard guard(made.lock);
        made.all.insert(datatype);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

bool forget_made(ucp_datatype_t datatype) noexcept
{
    auto& made = made_datatypes::instance();
    const std::lock_guard guard(made.lock);
    return made.all.erase(datatype) > 0;
}

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

// 0 if MPI shall do it. The context is that of Open MPI: the datatype.
ucp_datatype_t datatype_of_layout(void* context) noexcept
{
    const auto type = handle_of(context);
    if (type == MPI_DATATYPE_NULL) {
        return 0;
    }
    if (type == tried_type.load(std::memory_order_acquire)) {
        was_seen.store(true, std::memory_order_release);
        return 0;
    }
    known_type* const known       = is_used.load(std::memory_order_acquire) ? find_known(type) : nullptr;
    const ucp_datatype_t datatype = known == nullptr ? 0 : known->make_ucp_datatype();
    if (datatype != 0 && !note_made(datatype)) {
        ucp_layout_datatype_destroy(datatype);
        return 0;
    }
    return datatype;
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

} // namespace

bool ucp_datatypes::may_be_used()
{
    return implementation_below() == implementation::openmpi && !settings::get().always_takes_windows;
}

void ucp_datatypes::start()
{
    // A card that carries windows moves bytes without the CPU, which no engine of datatypes does.
    if (!may_be_used() || library::has_cards() || !library::has_world() || !settings::get().takes_messages) {
        return;
    }
    is_used.store(sends_to_itself(), std::memory_order_release);
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
    static const auto next = ucxl::mpi::ucx_function(ucp_dt_create_generic, "ucp_dt_create_generic");
    if (next == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (const ucp_datatype_t datatype = ucxl::mpi::datatype_of_layout(context); datatype != 0) {
        *datatype_p = datatype;
        return UCS_OK;
    }
    return next(operations, context, datatype_p);
}

extern "C" [[gnu::visibility("default")]] void ucp_dt_destroy(ucp_datatype_t datatype)
{
    static const auto next = ucxl::mpi::ucx_function(ucp_dt_destroy, "ucp_dt_destroy");
    if (ucxl::mpi::forget_made(datatype)) {
        ucp_layout_datatype_destroy(datatype);
    } else if (next != nullptr) {
        next(datatype);
    }
}
