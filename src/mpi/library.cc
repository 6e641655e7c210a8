#include "library.h"

#include "call_table.h"
#include "contexts.h"
#include "host_memory.h"
#include "implementation.h"
#include "one_pass.h"
#include "openmpi_options.h"
#include "report.h"
#include "requests.h"
#include "settings.h"
#include "staging.h"
#include "static_arrays.h"
#include "status.h"
#include "target_memory.h"
#include "type_contents.h"
#include "type_table.h"
#include "type_uses.h"
#include "ucp_datatypes.h"

#include <atomic>
#include <new>

namespace ucxl::mpi
{

namespace
{

std::atomic<bool> is_started{false};
std::atomic<bool> cards_carry{false};
std::atomic<ucp_context_h> card_context{nullptr};
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

void leave_to_mpi(const char* reason)
{
    log_info("datatypes are left to MPI: %s", reason);
    report::print_nothing(reason);
    status::print_nothing(reason);
}

} // namespace

bool library::has_world()
{
    int is_initialized = 0, is_finalized = 0;
    return PMPI_Initialized(&is_initialized) == MPI_SUCCESS && is_initialized != 0 &&
           PMPI_Finalized(&is_finalized) == MPI_SUCCESS && is_finalized == 0;
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

bool library::prepare()
{
    settings::complete();
    if (!settings::get().is_enabled) {
        status::print_nothing("UCX_LAYOUT_MPI_ENABLE says so");
        return false;
    }
    if (has_other_handles()) {
        log_error("%s is for another MPI than that of this program, and stays out: it knows %s", own_name(),
                  own_handles());
        return false;
    }
    let_openmpi_use_ucx();
    static_arrays::share();
    one_pass::prepare();
    return true;
}

void library::start()
{
    settings::complete(); // MPI may have loaded UCX
    if (!settings::get().is_enabled) {
        status::print_nothing("UCX_LAYOUT_MPI_ENABLE says so");
        return;
    }
    static_arrays::share();
    if (const char* const reason = why_without_ucx()) {
        leave_to_mpi(reason);
        return;
    }
    const ucp_context_h context = contexts::of_messages();
    const auto carrier          = contexts::carrier();
    const bool needs_windows    = !contexts::need_no_windows();
    if (!carrier && needs_windows && (context != nullptr || has_world())) {
        leave_to_mpi("MPI's UCX has no windows");
        return;
    }
    int threads = MPI_THREAD_MULTIPLE; // as if, where only sessions could tell
    if (has_world()) {
        PMPI_Query_thread(&threads);
    }
    cards_carry.store(carrier == UCP_LAYOUT_CARRIER_KEYS, std::memory_order_release);
    if (keeps_idle_windows() || threads == MPI_THREAD_MULTIPLE) {
        card_context.store(nullptr, std::memory_order_release);
    } else {
        card_context.store(context, std::memory_order_release);
    }
    ucp_datatypes::start();
    if (!ucp_datatypes::are_used() && !carrier && !needs_windows) {
        leave_to_mpi("layouts cannot take the place of its engine; UCX_LAYOUT_MPI_ENGINE=windows does not need that");
        return;
    }
    if (!ucp_datatypes::are_used() && context != nullptr && !contexts::tells_peers()) {
        leave_to_mpi("processes cannot tell each other that they have windows, because UCX_ADDRESS_VERSION is set");
        return;
    }
    if (!ucp_datatypes::are_used() && contexts::has_peer_without_windows()) {
        leave_to_mpi("a process of this job has no windows: it runs without this library, or with a UCX_TLS without "
                     "lay_copy");
        return;
    }
    if (PMPI_Type_create_keyval(copy_none<MPI_Datatype>, forget, &type_keyval, nullptr) != MPI_SUCCESS) {
        return;
    }
    is_started.store(true, std::memory_order_release);
    own_types::set(own_type_handles());
    if (settings::get().takes_all_types) {
        uses_of_types.want_all();
    }
    one_pass::start();
    if (!contexts::need_no_windows()) {
        host_memory::start(context);
    }
    report::start();
    take_calls();
    log_info("datatypes are layouts");
    status::print_active();
}

void library::stop()
{
    if (!is_active()) {
        return;
    }
    leave_calls();
    target_memory::stop();
    own_types::set_all();
    one_pass::stop();
    ucp_datatypes::stop();
    const auto types = known_types.clear();
    report::print(types);
    if (requests::keep_all()) {
        contexts::retire_windows();
    }
    for (known_type* const each : types) {
        each->remove_user();
    }
    staging::release();
    is_started.store(false, std::memory_order_release);
    PMPI_Type_free_keyval(&type_keyval);
}

void library::note_copy(MPI_Datatype type, MPI_Datatype copy)
{
    if (is_active() && !own_types::has(type) && (find_known(type) != nullptr || uses_of_types.has_begun(type))) {
        uses_of_types.begin(copy);
    }
}

known_type* learn(MPI_Datatype type) noexcept
{
    const auto combiner = combiner_of(type);
    if (!combiner || is_named(*combiner)) {
        uses_of_types.begin(type); // it is asked for again after as many bytes
        return nullptr;
    }
    known_type* known = nullptr;
    try {
        known = new known_type(type);
        if (!known_types.add(type, known)) { // another thread did
            known->remove_user();
            return find_known(type);
        }
        if (PMPI_Type_set_attr(type, type_keyval, known) == MPI_SUCCESS) {
            uses_of_types.end(type);
            return known;
        }
        known_types.remove(type);
        known->remove_user();
    } catch (const std::bad_alloc&) {
        if (known != nullptr) {
            known->remove_user();
        }
    }
    return nullptr;
}

} // namespace ucxl::mpi
