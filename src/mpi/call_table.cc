#include "call_table.h"

#include "settings.h"
#include "sys/search_order.h"
#include "sys/trampoline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include <dlfcn.h>

namespace ucxl::mpi
{

namespace
{

using any_function = void (*)();

// What a call starts, and where it ends. A call is taken only if this library also sees the end.
enum part : unsigned { nothing = 0, requests = 1, epochs = 2, probes = 4, partitions = 8, start_of_mpi = 16 };
constexpr part operator|(part a, part b)
{
    return static_cast<part>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

#define UCXL_INDEX(name, needs, ends) index_of_##name,
enum : std::size_t { UCXL_FOR_EACH_MPI_CALL(UCXL_INDEX) number_of_calls };
#undef UCXL_INDEX

any_function bind_and_find(std::size_t index, const void* caller) noexcept;
int complain_of_missing(std::size_t index) noexcept;

// What MPI_...() jumps to at first: it looks for MPI, and goes on.
template <std::size_t index, typename... Arguments>
[[gnu::noinline]] int first_call(Arguments... arguments)
{
    const any_function found = bind_and_find(index, __builtin_return_address(0));
    return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
}

template <std::size_t index, typename... Arguments>
int missing_call(Arguments... /*arguments*/)
{
    return complain_of_missing(index);
}

template <std::size_t index, typename... Arguments>
consteval auto first_call_like(int (* /*function*/)(Arguments...)) -> int (*)(Arguments...)
{
    return first_call<index, Arguments...>;
}

template <std::size_t index, typename... Arguments>
consteval auto missing_call_like(int (* /*function*/)(Arguments...)) -> int (*)(Arguments...)
{
    return missing_call<index, Arguments...>;
}

} // namespace

// The trampolines know the order.
template <typename Function>
struct call_slots {
    std::atomic<Function*> called;
    std::atomic<Function*> next;
    std::atomic<Function*> below;
};
template <typename Function>
struct query_slot {
    std::atomic<Function*> below;
};

} // namespace ucxl::mpi

#define UCXL_CALL_SLOTS(name, needs, ends)                                                                             \
    [[gnu::visibility("hidden"), gnu::used]] constinit ucxl::mpi::call_slots<decltype(PMPI_##name)> ucxl_slots_##name{ \
        {ucxl::mpi::first_call_like<ucxl::mpi::index_of_##name>(&PMPI_##name)}, {}, {}};                               \
    UCXL_TRAMPOLINE(MPI_##name, "ucxl_slots_" #name, UCXL_EXPORTED)                                                    \
    UCXL_TRAMPOLINE(next_MPI_##name, "ucxl_slots_" #name "+8", UCXL_HIDDEN)                                            \
    UCXL_TRAMPOLINE(PMPI_##name, "ucxl_slots_" #name "+16", UCXL_HIDDEN)
#define UCXL_QUERY_SLOT(name)                                                                                          \
    [[gnu::visibility("hidden"),                                                                                       \
      gnu::used]] constinit ucxl::mpi::query_slot<decltype(PMPI_##name)> ucxl_slot_##name{};                           \
    UCXL_TRAMPOLINE(PMPI_##name, "ucxl_slot_" #name, UCXL_HIDDEN)
extern "C" {
UCXL_FOR_EACH_MPI_CALL(UCXL_CALL_SLOTS)
UCXL_FOR_EACH_MPI_QUERY(UCXL_QUERY_SLOT)
}

namespace ucxl::mpi
{

#ifdef OPEN_MPI
constinit openmpi_handles handles_below;
#endif

namespace
{

// A function of MPI that this library stands before.
struct call_row {
    const char* name; // MPI_...
    part needs, ends;
    void (*set_called)(any_function);
    void (*set_next)(any_function);
    void (*set_below)(any_function);
    any_function own, missing;
};

struct query_row {
    const char* name; // PMPI_...
    void (*set_below)(any_function);
};

// None of them has arguments for the compiler, but all are called with those of their slot.
template <auto* slot>
void set(any_function function)
{
    slot->store(reinterpret_cast<decltype(slot->load())>(function), std::memory_order_release);
}

#define UCXL_CALL_ROW(name, needs, ends)                                                                               \
    call_row{"MPI_" #name,                                                                                             \
             needs,                                                                                                    \
             ends,                                                                                                     \
             set<&ucxl_slots_##name.called>,                                                                           \
             set<&ucxl_slots_##name.next>,                                                                             \
             set<&ucxl_slots_##name.below>,                                                                            \
             reinterpret_cast<any_function>(own_MPI_##name),                                                           \
             reinterpret_cast<any_function>(missing_call_like<index_of_##name>(&PMPI_##name))},
#define UCXL_QUERY_ROW(name) query_row{"PMPI_" #name, set<&ucxl_slot_##name.below>},

const std::array<call_row, number_of_calls>& calls()
{
    static const std::array<call_row, number_of_calls> all{UCXL_FOR_EACH_MPI_CALL(UCXL_CALL_ROW)};
    return all;
}

const auto& queries()
{
    static const auto all = std::to_array<query_row>({UCXL_FOR_EACH_MPI_QUERY(UCXL_QUERY_ROW)});
    return all;
}

struct bound_mpi {
    std::mutex lock;
    bool is_found = false;
    void* handle  = nullptr; // for dlsym
    std::string file;
    std::array<any_function, number_of_calls> next{};
    std::array<bool, number_of_calls> is_there{};
    std::array<bool, number_of_calls> is_taken{};
    // The object whose calls by the profiling name come here.
    std::array<const void*, number_of_calls> redirected{};
};

// Not destroyed at exit: destructors that run later may call MPI.
bound_mpi& bound()
{
    static bound_mpi& only = *new bound_mpi;
    return only;
}

const void* own_address()
{
    return reinterpret_cast<const void*>(&own_address);
}

std::string profiling_name(const char* name)
{
    return std::string("P") + name;
}

// An MPI in the global scope stands before all others. Else it is the one that the caller reaches.
void* handle_of_mpi(const void* mpi_init)
{
    return dlsym(RTLD_NEXT, "PMPI_Init") == mpi_init ? RTLD_DEFAULT
                                                     : dlopen(file_of(mpi_init).c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

#ifdef OPEN_MPI
template <typename Handle>
void read_handle(Handle& handle, const char* symbol)
{
    handle = static_cast<Handle>(symbol_of_mpi(symbol));
}

void read_handles()
{
    openmpi_handles& all = handles_below;
    read_handle(all.null_comm, "ompi_mpi_comm_null");
    read_handle(all.self, "ompi_mpi_comm_self");
    read_handle(all.world, "ompi_mpi_comm_world");
    read_handle(all.null_type, "ompi_mpi_datatype_null");
    read_handle(all.byte, "ompi_mpi_byte");
    read_handle(all.short_int, "ompi_mpi_short_int");
    read_handle(all.fatal_errors, "ompi_mpi_errors_are_fatal");
    read_handle(all.null_message, "ompi_message_null");
    read_handle(all.no_proc_message, "ompi_message_no_proc");
    read_handle(all.no_op, "ompi_mpi_op_no_op");
    read_handle(all.null_request, "ompi_request_null");
    read_handle(all.null_session, "ompi_mpi_instance_null");
    read_handle(all.null_win, "ompi_mpi_win_null");
}
#else
void read_handles()
{
}
#endif

// A caller may be needed by a library that needs MPI, and not need it itself. Null if the process has several MPIs.
void* only_mpi_init()
{
    void* only = nullptr;
    for (const std::string& file : loaded_files()) {
        void* const handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (handle == nullptr) {
            continue;
        }
        void* const mpi_init = dlsym(handle, "PMPI_Init");
        dlclose(handle);
        if (mpi_init != nullptr && only != nullptr && mpi_init != only) {
            return nullptr;
        }
        only = mpi_init == nullptr ? only : mpi_init;
    }
    return only;
}

void set_called(const bound_mpi& mpi, std::size_t index, bool is_own)
{
    calls()[index].set_called(is_own ? calls()[index].own : mpi.next[index]);
}

// Programs call MPI, and the start and the end of MPI come here.
void leave(const bound_mpi& mpi)
{
    for (std::size_t i = 0; i < number_of_calls; ++i) {
        set_called(mpi, i, calls()[i].needs == start_of_mpi);
    }
}

// Under the lock.
void bind(bound_mpi& mpi, const void* caller)
{
    void* mpi_init = function_behind(own_address(), "PMPI_Init", caller);
    mpi_init       = mpi_init == nullptr ? only_mpi_init() : mpi_init;
    mpi.file       = file_of(mpi_init);
    mpi.handle     = mpi_init == nullptr ? nullptr : handle_of_mpi(mpi_init);
    for (std::size_t i = 0; i < number_of_calls; ++i) {
        const call_row& call = calls()[i];
        const auto below     = reinterpret_cast<any_function>(dlsym(mpi.handle, profiling_name(call.name).c_str()));
        void* const in_order = dlsym(RTLD_NEXT, call.name);
        const auto next      = reinterpret_cast<any_function>(
            in_order != nullptr || mpi.handle == RTLD_DEFAULT ? in_order : dlsym(mpi.handle, call.name));
        mpi.is_there[i] = mpi_init != nullptr && below != nullptr;
        mpi.next[i]     = next == nullptr ? call.missing : next;
        call.set_below(mpi.is_there[i] ? below : call.missing);
        call.set_next(mpi.next[i]);
    }
    for (const query_row& query : queries()) {
        query.set_below(reinterpret_cast<any_function>(dlsym(mpi.handle, query.name)));
    }
    read_handles();
    mpi.is_found = mpi_init != nullptr;
    if (mpi.is_found) {
        leave(mpi);
    }
}

any_function bind_and_find(std::size_t index, const void* caller) noexcept
{
    bound_mpi& mpi = bound();
    const std::lock_guard guard(mpi.lock);
    if (!mpi.is_found) {
        bind(mpi, caller);
    }
    return calls()[index].needs == start_of_mpi && mpi.is_found ? calls()[index].own : mpi.next[index];
}

int complain_of_missing(std::size_t index) noexcept
{
    log_error("%s is not in the MPI of this program (%s)", calls()[index].name, file_of_mpi());
    return MPI_ERR_OTHER;
}

// Whether calls of the program come here, also through a tool that stands before.
bool is_seen(const bound_mpi& mpi, std::size_t index)
{
    const void* const first = dlsym(RTLD_DEFAULT, calls()[index].name);
    return first == nullptr || start_of(first) == start_of(own_address()) || start_of(first) == mpi.redirected[index];
}

std::size_t index_of(const char* name)
{
    const auto found =
        std::ranges::find_if(calls(), [&](const call_row& call) { return std::strcmp(call.name, name) == 0; });
    return static_cast<std::size_t>(found - calls().begin());
}

} // namespace

bool has_function(const char* name) noexcept
{
    return dlsym(bound().handle, profiling_name(name).c_str()) != nullptr;
}

void* symbol_of_mpi(const char* name) noexcept
{
    return dlsym(bound().handle, name);
}

const char* file_of_mpi() noexcept
{
    return bound().file.c_str();
}

void take_calls() noexcept
{
    bound_mpi& mpi = bound();
    const std::lock_guard guard(mpi.lock);
    unsigned unseen        = nothing;
    const char* in_the_way = nullptr;
    for (std::size_t i = 0; i < number_of_calls; ++i) {
        if (mpi.is_there[i] && calls()[i].ends != nothing && !is_seen(mpi, i)) {
            unseen |= calls()[i].ends;
            in_the_way = calls()[i].name;
        }
    }
    if (in_the_way != nullptr) {
        log_warn("%s of %s stands before this library: calls that need it are left to MPI", in_the_way,
                 file_of(dlsym(RTLD_DEFAULT, in_the_way)).c_str());
    }
    for (std::size_t i = 0; i < number_of_calls; ++i) {
        mpi.is_taken[i] = mpi.is_there[i] && (calls()[i].needs & unseen) == 0;
        set_called(mpi, i, mpi.is_taken[i]);
    }
}

bool takes_call(const char* name) noexcept
{
    const std::size_t index = index_of(name);
    return index < number_of_calls && bound().is_taken[index] && is_seen(bound(), index);
}

void leave_calls() noexcept
{
    bound_mpi& mpi = bound();
    const std::lock_guard guard(mpi.lock);
    leave(mpi);
}

void note_redirected(const char* name, const void* start) noexcept
{
    if (const std::size_t index = index_of(name + 1); index < number_of_calls) {
        bound().redirected[index] = start;
    }
}

bool ends_operations(const char* name) noexcept
{
    const std::size_t index = index_of(name + 1);
    return index < number_of_calls && calls()[index].ends != nothing;
}

void* function_for_profiling_name(const char* name) noexcept
{
    if (std::strncmp(name, "PMPI_", 5) != 0 || index_of(name + 1) == number_of_calls) {
        return nullptr;
    }
    static void* const self = [] { return dlopen(file_of(own_address()).c_str(), RTLD_NOLOAD | RTLD_LAZY); }();
    void* const found       = self == nullptr ? nullptr : dlsym(self, name + 1);
    // dlsym() also looks into the libraries that this one needs.
    return start_of(found) == start_of(own_address()) ? found : nullptr;
}

} // namespace ucxl::mpi
