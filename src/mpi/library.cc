#include "library.h"

#include "implementation.h"
#include "report.h"
#include "requests.h"
#include "settings.h"
#include "staging.h"
#include "transports.h"
#include "type_table.h"
#include "ucp_datatypes.h"
#include "ucx_function.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <vector>

namespace ucxl::mpi
{

namespace
{

std::atomic<bool> is_started{false};
std::atomic<bool> cards_carry{false};
std::atomic<ucp_context_h> card_context{nullptr};
// Of the workers that are created while MPI starts.
std::atomic<bool> is_starting{false};
std::atomic<ucp_context_h> context_of_mpi{nullptr};
int type_keyval = MPI_KEYVAL_INVALID;

// The handle may be given to another datatype from now on.
int forget(MPI_Datatype type, int /*keyval*/, void* /*value*/, void* /*extra*/)
{
    if (library::is_active()) {
        if (known_type* const known = known_types.remove(type)) {
            report::note_end(*known);
            known->remove_user();
        }
    }
    return MPI_SUCCESS;
}

// Maps a window for a try, and tells who would carry it.
std::optional<ucp_layout_carrier_t> carrier_in(ucp_context_h context)
{
    constexpr std::size_t block = 4096, number = 4;
    std::vector<std::byte> memory(2 * block * number);
    void* base = memory.data();
    ucp_layout_map_params_t params{};
    params.field_mask          = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES;
    params.bases               = &base;
    params.num_bases           = 1;
    ucp_layout_window_h window = nullptr;
    if (ucp_layout_strided(block, number, 2 * block, &params.layout) != UCS_OK) {
        return std::nullopt;
    }
    const layout_ptr owner = owned_layout(params.layout);
    if (ucp_layout_map(context, &params, &window) != UCS_OK) {
        return std::nullopt;
    }
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_CARRIER;
    ucp_layout_window_query(window, &attr);
    ucp_layout_unmap(window);
    return attr.carrier;
}

} // namespace

bool library::has_world()
{
    int is_initialized = 0;
    return PMPI_Initialized(&is_initialized) == MPI_SUCCESS && is_initialized != 0;
}

bool library::is_active()
{
    return is_started.load(std::memory_order_acquire);
}

ucp_context_h library::context_of_windows()
{
    return card_context.load(std::memory_order_acquire);
}

bool library::has_cards()
{
    return cards_carry.load(std::memory_order_acquire);
}

void library::prepare()
{
    if (has_other_handles()) {
        log_error("%s is for another MPI than that of this program: it knows %s", own_name(), own_handles());
        std::exit(EXIT_FAILURE);
    }
    if (settings::get().is_enabled) {
        complete_transports();
        if (!ucp_datatypes::may_be_used()) {
            require_library_of_peers();
        }
        is_starting.store(true, std::memory_order_release);
    }
}

void library::start()
{
    if (!settings::get().is_enabled) {
        return;
    }
    if (const char* const reason = why_without_ucx()) {
        log_info("datatypes are left to MPI: %s", reason);
        return;
    }
    is_starting.store(false, std::memory_order_release);
    const ucp_context_h context = context_of_mpi.load(std::memory_order_acquire);
    const auto carrier          = carrier_in(context);
    if (!carrier) {
        log_info("datatypes are left to MPI: its UCX has no windows");
        return;
    }
    int threads = MPI_THREAD_MULTIPLE; // as if, where only sessions could tell
    if (has_world()) {
        PMPI_Query_thread(&threads);
    }
    cards_carry.store(context != nullptr && *carrier == UCP_LAYOUT_CARRIER_KEYS, std::memory_order_release);
    if (keeps_idle_windows() || threads == MPI_THREAD_MULTIPLE) {
        card_context.store(nullptr, std::memory_order_release);
    } else {
        card_context.store(context, std::memory_order_release);
    }
    if (PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &type_keyval, nullptr) != MPI_SUCCESS) {
        return;
    }
    ucp_datatypes::start();
    is_started.store(true, std::memory_order_release);
    log_info("datatypes are layouts");
}

void library::stop()
{
    if (!is_active()) {
        return;
    }
    ucp_datatypes::stop();
    const auto types = known_types.clear();
    report::print(types);
    requests::forget_all();
    for (known_type* const each : types) {
        each->remove_user();
    }
    staging::release();
    is_started.store(false, std::memory_order_release);
    PMPI_Type_free_keyval(&type_keyval);
}

void library::learn(MPI_Datatype type)
{
    if (!is_active() || find_known(type) != nullptr) {
        return;
    }
    known_type* known = nullptr;
    try {
        known = new known_type(type);
        if (!known_types.add(type, known)) {
            known->remove_user();
        } else if (PMPI_Type_set_attr(type, type_keyval, known) != MPI_SUCCESS) {
            known_types.remove(type);
            known->remove_user();
        }
    } catch (const std::bad_alloc&) {
        if (known != nullptr) {
            known->remove_user();
        }
    }
}

} // namespace ucxl::mpi

// MPI does not tell its context. This function of UCP does, because MPI makes its workers while it starts.
extern "C" [[gnu::visibility("default")]] ucs_status_t
ucp_worker_create(ucp_context_h context, const ucp_worker_params_t* params, ucp_worker_h* worker)
{
    using namespace ucxl::mpi;
    static const auto next = ucx_function(ucp_worker_create, "ucp_worker_create");
    if (next == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    const ucs_status_t status = next(context, params, worker);
    if (status == UCS_OK && is_starting.load(std::memory_order_acquire)) {
        context_of_mpi.store(context, std::memory_order_release);
    }
    return status;
}
