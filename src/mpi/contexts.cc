#include "contexts.h"

#include "call_table.h"
#include "one_pass.h"
#include "settings.h"
#include "ucp_datatypes.h"
#include "ucx_function.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace ucxl::mpi
{

namespace
{

// Handles of one kind. What is left of an ended one is replaced when UCX gives its handle again.
template <typename Handle>
class noted_handles
{
public:
    // Room for those of the near future, so that note() does not throw.
    void reserve() { _handles.reserve(_handles.size() + 16); }
    void note(Handle handle, bool belongs)
    {
        std::erase(_handles, handle);
        if (belongs) {
            _handles.push_back(handle);
        }
    }
    bool has(Handle handle) const { return std::ranges::contains(_handles, handle); }

private:
    std::vector<Handle> _handles;
};

enum class use_of_windows : unsigned char { undecided, used, none };

struct known_contexts {
    std::atomic<bool> is_starting{false};
    std::atomic<bool> is_world{false};
    std::atomic<bool> takes_part{false};
    std::atomic<bool> needs_no_windows{false};
    std::atomic<ucp_context_h> of_messages{nullptr};
    std::atomic<bool> has_context_without_windows{false};
    std::atomic<bool> has_peer_without_windows{false};
    std::atomic<unsigned> num_peers{0};
    std::atomic<use_of_windows> use{use_of_windows::undecided};
    std::mutex lock;
    noted_handles<ucp_context_h> with_windows; // that tell their peers
    noted_handles<ucp_context_h> without;      // because they need none
    noted_handles<ucp_worker_h> workers;       // of these
};

// Never destroyed: MPI may make endpoints until the process ends.
known_contexts& known()
{
    static known_contexts& only = *new known_contexts;
    return only;
}

// Of UCX's second format: the first four bits of an address are 1.
bool has_windows(const ucp_address_t* address)
{
    std::uint8_t header = 0;
    std::memcpy(&header, address, sizeof(header));
    return (header & 0xf) >= 1;
}

// UCX is there now, so what its configuration files say is known.
unsigned choose_flags(const void* /*caller*/, void* /*arg*/)
try {
    settings::complete();
    if (!known().takes_part.load() || !settings::get().is_enabled) {
        return UCP_LAYOUT_CONTEXT_FLAG_NO_WINDOWS;
    }
    const bool needs_none = known().is_world.load() && ucp_datatypes::may_be_used() && !one_pass::may_start();
    known().needs_no_windows.store(needs_none, std::memory_order_release);
    const std::lock_guard guard(known().lock);
    known().with_windows.reserve();
    known().without.reserve();
    known().workers.reserve();
    return UCP_LAYOUT_CONTEXT_FLAG_TRANSPORT | UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS |
           (needs_none ? UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS : 0);
} catch (const std::bad_alloc&) {
    return 0;
}

void note_context(ucp_context_h context, unsigned flags, void* /*arg*/)
{
    const bool needs_none = (flags & UCP_LAYOUT_CONTEXT_FLAG_ONLY_CARDS) != 0;
    if (needs_none || !(flags & UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS)) {
        known().has_context_without_windows.store(true, std::memory_order_release);
    }
    const std::lock_guard guard(known().lock);
    known().with_windows.note(context, (flags & UCP_LAYOUT_CONTEXT_FLAG_TELL_PEERS) != 0);
    known().without.note(context, needs_none);
}

void note_worker(ucp_context_h context, ucp_worker_h worker)
{
    known().of_messages.store(context, std::memory_order_release);
    const std::lock_guard guard(known().lock);
    known().workers.note(worker, known().with_windows.has(context));
}

// False if the process must not have this peer.
bool may_connect(ucp_worker_h worker, const ucp_ep_params_t& params)
{
    {
        const std::lock_guard guard(known().lock);
        if (!known().workers.has(worker)) {
            return true;
        }
    }
    if (params.field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) {
        known().num_peers.fetch_add(1, std::memory_order_relaxed);
    }
    if (!(params.field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) || has_windows(params.address)) {
        return true;
    }
    // One of this and may_use_windows(), which writes and reads in the other order, sees what the other one wrote.
    known().has_peer_without_windows.store(true);
    if (known().use.load() != use_of_windows::used) {
        return true;
    }
    // All others were known before: only a spawned process, or one of another job, comes later, and no message to it is
    // on its way yet.
    if (one_pass::is_on() && ucp_datatypes::are_used()) {
        one_pass::stop();
        known().use.store(use_of_windows::none);
        return true;
    }
    // What it would receive from a window, or send into one, would never end.
    log_error("a process of this job has no windows, but this one uses them: it runs without this library, or with a "
              "UCX_TLS without lay_copy");
    return false;
}

} // namespace

void contexts::begin(way_of_start way, bool takes_part)
{
    known().is_world.store(way == way_of_start::world);
    known().takes_part.store(takes_part);
    known().needs_no_windows.store(false, std::memory_order_release);
    known().is_starting.store(true, std::memory_order_release);
    known().of_messages.store(nullptr, std::memory_order_release);
    known().has_context_without_windows.store(false, std::memory_order_release);
    known().has_peer_without_windows.store(false, std::memory_order_release);
    known().use.store(use_of_windows::undecided, std::memory_order_release);
    known().num_peers.store(0, std::memory_order_relaxed);
    ucp_layout_context_watch_params_t params{};
    params.field_mask = UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_CHOOSE | UCP_LAYOUT_CONTEXT_WATCH_PARAM_FIELD_MADE;
    params.choose     = choose_flags;
    params.made       = note_context;
    ucp_layout_context_watch(&params);
}

void contexts::end()
{
    ucp_layout_context_watch(nullptr);
    known().is_starting.store(false, std::memory_order_release);
}

ucp_context_h contexts::of_messages()
{
    return known().of_messages.load(std::memory_order_acquire);
}

std::optional<ucp_layout_carrier_t> contexts::carrier()
{
    ucp_layout_context_attr_t attr{};
    attr.field_mask             = UCP_LAYOUT_CONTEXT_ATTR_FIELD_CARRIER;
    const ucp_context_h context = of_messages();
    {
        const std::lock_guard guard(known().lock);
        if (known().without.has(context)) {
            return std::nullopt;
        }
    }
    if (context == nullptr || ucp_layout_context_query(context, &attr) != UCS_OK) {
        return std::nullopt;
    }
    return attr.carrier;
}

bool contexts::need_no_windows()
{
    return known().needs_no_windows.load(std::memory_order_acquire);
}

bool contexts::has_peer_without_windows()
{
    return known().has_peer_without_windows.load(std::memory_order_acquire);
}

bool contexts::tells_peers()
{
    const ucp_context_h context = of_messages();
    const std::lock_guard guard(known().lock);
    return context != nullptr && known().with_windows.has(context) && !known().without.has(context);
}

unsigned contexts::num_peers()
{
    return known().num_peers.load(std::memory_order_relaxed);
}

bool contexts::may_use_windows() noexcept
{
    const auto use = known().use.load(std::memory_order_acquire);
    if (use != use_of_windows::undecided) [[likely]] {
        return use == use_of_windows::used;
    }
    if (of_messages() == nullptr) {
        return false;
    }
    known().use.store(use_of_windows::used);
    if (known().has_context_without_windows.load(std::memory_order_acquire) ||
        known().has_peer_without_windows.load()) {
        known().use.store(use_of_windows::none);
        return false;
    }
    return true;
}

// UCX offers ucm_vm_munmap() to programs that release memory in ways it cannot see.
void contexts::retire_windows() noexcept
{
    const auto forget           = reinterpret_cast<void (*)(void*, std::size_t)>(symbol_of_mpi("ucm_vm_munmap"));
    const ucp_context_h context = of_messages();
    ucp_layout_context_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_CONTEXT_ATTR_FIELD_ADDRESSES;
    if (forget != nullptr && context != nullptr && ucp_layout_context_query(context, &attr) == UCS_OK) {
        forget(attr.address, attr.length);
    }
}

} // namespace ucxl::mpi

// MPI does not tell its context. This function of UCP does, because MPI makes its workers while it starts.
extern "C" [[gnu::visibility("default")]] ucs_status_t
ucp_worker_create(ucp_context_h context, const ucp_worker_params_t* params, ucp_worker_h* worker)
{
    using namespace ucxl::mpi;
    const auto next = ucx_function(ucp_worker_create, "ucp_worker_create", __builtin_return_address(0));
    if (next == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    const ucs_status_t status = next(context, params, worker);
    if (status == UCS_OK && known().is_starting.load(std::memory_order_acquire)) {
        note_worker(context, *worker);
    }
    return status;
}

extern "C" [[gnu::visibility("default")]] ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                                                                     ucp_ep_h* endpoint)
{
    using namespace ucxl::mpi;
    const auto next = ucx_function(ucp_ep_create, "ucp_ep_create", __builtin_return_address(0));
    if (next == nullptr || !may_connect(worker, *params)) {
        return UCS_ERR_UNSUPPORTED;
    }
    return next(worker, params, endpoint);
}
