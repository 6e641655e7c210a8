#include "library.h"

#include "report.h"
#include "requests.h"
#include "settings.h"
#include "staging.h"
#include "type_table.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace ucxl::mpi
{

namespace
{

std::atomic<bool> is_started{false};
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

#ifdef OPEN_MPI
constexpr const char* own_name = "libmpi_layout_openmpi.so";

// Open MPI has no call that tells which of its components moves messages. The chosen one begins with its name.
const char* why_without_ucx()
{
    const auto* const chosen = static_cast<const char*>(dlsym(RTLD_DEFAULT, "mca_pml_base_selected_component"));
    if (chosen == nullptr) {
        return "this Open MPI does not tell how it moves messages";
    }
    constexpr std::string_view name("\0ucx\0", 5);
    constexpr std::size_t head = 160; // versions, then names of project, framework and component
    return std::string_view(chosen, head).find(name) == std::string_view::npos
               ? "Open MPI does not move messages by UCX (it does with --mca pml ucx)"
               : nullptr;
}

bool is_other_mpi()
{
    return dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") == nullptr;
}
#else
constexpr const char* own_name = "libmpi_layout_mpich.so";

const char* why_without_ucx()
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    PMPI_Get_library_version(text, &length);
    const std::string_view version(text, static_cast<std::size_t>(length));
    return version.find("ch4:ucx") == version.npos ? "this MPICH does not move messages by UCX (device ch4:ucx)"
                                                   : nullptr;
}

bool is_other_mpi()
{
    return dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr;
}
#endif

// Null if UCX has windows in this process; what is wrong was logged otherwise.
const char* why_without_windows()
{
    char memory[3]   = {};
    void* const base = memory;
    ucp_layout_map_params_t params{};
    params.field_mask          = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES;
    params.bases               = &base;
    params.num_bases           = 1;
    ucp_layout_window_h window = nullptr;
    if (ucp_layout_strided(1, 2, 2, &params.layout) != UCS_OK) {
        return "no layout could be made";
    }
    const layout_ptr owner = owned_layout(params.layout);
    if (ucp_layout_map(nullptr, &params, &window) != UCS_OK) {
        return "this UCX has no windows";
    }
    ucp_layout_unmap(window);
    return nullptr;
}

// Windows need one transport of this project in MPI's UCX. A list of transports that leaves it out gets it.
void complete_transports()
{
    const char* const set = std::getenv("UCX_TLS");
    if (set == nullptr || set[0] == '^' || std::strstr(set, "lay_copy") != nullptr || std::strstr(set, "all") == set) {
        return;
    }
    const std::string completed = std::string(set) + ",lay_copy";
    setenv("UCX_TLS", completed.c_str(), 1);
    log_info("UCX_TLS=%s, to which lay_copy was added", completed.c_str());
}

} // namespace

bool library::is_active()
{
    return is_started.load(std::memory_order_acquire);
}

ucp_context_h library::context_of_windows()
{
    return card_context.load(std::memory_order_acquire);
}

void library::prepare()
{
    if (is_other_mpi()) {
        // Its handles have another size, so no call could be passed on.
        log_error("%s is for another MPI than that of this program", own_name);
        std::exit(EXIT_FAILURE);
    }
    if (settings::get().is_enabled) {
        complete_transports();
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
    if (const char* const reason = why_without_windows()) {
        log_info("datatypes are left to MPI: %s", reason);
        return;
    }
    if (PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &type_keyval, nullptr) != MPI_SUCCESS) {
        return;
    }
    is_started.store(true, std::memory_order_release);
    log_info("datatypes are layouts");
}

void library::stop()
{
    if (!is_active()) {
        return;
    }
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
