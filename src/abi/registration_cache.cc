#include "registration_cache.h"

#include "ucx.h"

#include <climits>
#include <cstdio>
#include <format>
#include <sys/mman.h>

extern "C" {
#include <ucm/api/ucm.h>
#include <ucs/memory/rcache.h>
}

namespace ucxl::abi
{

// A region of UCX, whose first member never changed, and behind it ours. The rest of a region is longer in some
// releases than in others (80 and 88 bytes), whatever the header at hand says.
struct registration_cache::entry {
    static constexpr std::size_t longest_region = 128;

    ucs_rcache_region_t& super() { return *reinterpret_cast<ucs_rcache_region_t*>(region); }

    alignas(std::max_align_t) std::byte region[longest_region];
    void* registration;
};

static_assert(sizeof(ucs_rcache_region_t) <= registration_cache::entry::longest_region);

namespace
{

constexpr int event_priority = 1000; // as UCX's own caches

struct parameters_1_16 {
    std::size_t region_length;
    std::size_t alignment;
    std::size_t max_alignment;
    int events;
    int event_priority;
    const void* operations;
    void* context;
    int flags;
    unsigned long max_regions;
    std::size_t max_length;
    std::size_t max_unreleased;
};

struct parameters_1_17 {
    std::size_t region_length;
    int events;
    int event_priority;
    const void* operations;
    void* context;
    int flags;
    unsigned long max_regions;
    std::size_t max_length;
    std::size_t max_unreleased;
};

using register_function   = ucs_status_t (*)(void*, ucs_rcache_t*, void*, ucs_rcache_region_t*, std::uint16_t);
using deregister_function = void (*)(void*, ucs_rcache_t*, ucs_rcache_region_t*);
using merge_function      = void (*)(void*, ucs_rcache_t*, void*, ucs_rcache_region_t*);
using dump_function       = void (*)(void*, ucs_rcache_t*, ucs_rcache_region_t*, char*, std::size_t);

struct operations_1_16 {
    register_function add;
    deregister_function remove;
    dump_function dump;
};

struct operations_1_18 {
    register_function add;
    deregister_function remove;
    merge_function merge;
    dump_function dump;
};

using get_1_16 = ucs_status_t (*)(ucs_rcache_t* cache, void* address, std::size_t length, int protection, void* arg,
                                  ucs_rcache_region_t** region);
using get_1_17 = ucs_status_t (*)(ucs_rcache_t* cache, void* address, std::size_t length, std::size_t alignment,
                                  int protection, void* arg, ucs_rcache_region_t** region);

constexpr std::size_t default_alignment = 16; // UCS_RCACHE_MIN_ALIGNMENT
constexpr std::size_t page              = 4096;

registration_cache::entry& entry_of(ucs_rcache_region_t* region)
{
    return *reinterpret_cast<registration_cache::entry*>(region);
}

} // namespace

struct registration_cache::table {
    void (*destroy)(ucs_rcache_t*);
    void (*put)(ucs_rcache_t*, ucs_rcache_region_t*);
    void* get;

    static ucs_status_t add(void* context, ucs_rcache_t*, void*, ucs_rcache_region_t* region, std::uint16_t)
    {
        const auto& used   = static_cast<registration_cache*>(context)->_operations;
        auto& added        = entry_of(region);
        added.registration = used.add(used.context, reinterpret_cast<void*>(region->super.start),
                                      region->super.end - region->super.start);
        return added.registration != nullptr ? UCS_OK : UCS_ERR_INVALID_ADDR;
    }

    static void remove(void* context, ucs_rcache_t*, ucs_rcache_region_t* region)
    {
        const auto& used = static_cast<registration_cache*>(context)->_operations;
        used.remove(used.context, entry_of(region).registration, region->super.end - region->super.start);
    }

    static void merge(void*, ucs_rcache_t*, void*, ucs_rcache_region_t*) {}

    static void dump(void*, ucs_rcache_t*, ucs_rcache_region_t* region, char* text, std::size_t max)
    {
        std::snprintf(text, max, "registration %p", entry_of(region).registration);
    }
};

result<std::unique_ptr<registration_cache>> registration_cache::create(const char* name, const operations& operations)
{
    static const operations_1_16 old_operations = {table::add, table::remove, table::dump};
    static const operations_1_18 new_operations = {table::add, table::remove, table::merge, table::dump};
    std::unique_ptr<registration_cache> created(new registration_cache);
    created->_operations = operations;
    created->_table      = std::make_unique<table>();
    const auto create =
        find_function<ucs_status_t (*)(const void*, const char*, void*, ucs_rcache_t**)>("ucs_rcache_create");
    created->_table->destroy = find_function<decltype(table::destroy)>("ucs_rcache_destroy");
    created->_table->put     = find_function<decltype(table::put)>("ucs_rcache_region_put");
    created->_table->get     = find_symbol("ucs_rcache_get");
    if (create == nullptr || created->_table->destroy == nullptr || created->_table->put == nullptr ||
        created->_table->get == nullptr) {
        return fail(errc::unsupported, "this UCX exports no registration cache (ucs_rcache_create)");
    }
    const form& form        = *attached();
    const void* const table = form.merges_registrations ? static_cast<const void*>(&new_operations)
                                                        : static_cast<const void*>(&old_operations);
    constexpr int events    = UCM_EVENT_VM_UNMAPPED | UCM_EVENT_MEM_TYPE_FREE;
    const parameters_1_16 old_parameters{sizeof(entry), default_alignment, page, events,    event_priority,
                                         table,         created.get(),     0,    ULONG_MAX, SIZE_MAX,
                                         SIZE_MAX};
    const parameters_1_17 new_parameters{sizeof(entry), events,   event_priority, table, created.get(), 0,
                                         ULONG_MAX,     SIZE_MAX, SIZE_MAX};
    ucs_rcache_t* cache = nullptr;
    const auto status   = create(form.aligns_registrations ? static_cast<const void*>(&new_parameters)
                                                           : static_cast<const void*>(&old_parameters),
                               name, nullptr, &cache);
    if (status == UCS_ERR_UNSUPPORTED) {
        return fail(errc::unsupported,
                    "UCX does not see when memory is unmapped, which keys need (UCX_MEM_EVENTS is n, "
                    "or UCX_MEM_MMAP_HOOK_MODE is none)");
    }
    if (status != UCS_OK) {
        return fail(errc::no_memory,
                    std::format("no registration cache for {} (status {})", name, static_cast<int>(status)));
    }
    created->_cache = cache;
    return created;
}

registration_cache::~registration_cache()
{
    if (_cache != nullptr) {
        _table->destroy(static_cast<ucs_rcache_t*>(_cache));
    }
}

result<registration_cache::entry*> registration_cache::get(void* address, std::size_t length)
{
    constexpr int protection   = PROT_READ | PROT_WRITE;
    ucs_rcache_region_t* found = nullptr;
    auto* const cache          = static_cast<ucs_rcache_t*>(_cache);
    const std::lock_guard guard(_lock);
    const auto status =
        attached()->aligns_registrations
            ? reinterpret_cast<get_1_17>(_table->get)(cache, address, length, default_alignment, protection, nullptr,
                                                      &found)
            : reinterpret_cast<get_1_16>(_table->get)(cache, address, length, protection, nullptr, &found);
    if (status != UCS_OK) {
        return fail(status == UCS_ERR_NO_MEMORY ? errc::no_memory : errc::invalid_param,
                    std::format("{} bytes at {} cannot be registered: not mapped, not writable, or over the limit of "
                                "locked memory",
                                length, address));
    }
    return &entry_of(found);
}

void registration_cache::put(entry* used)
{
    const std::lock_guard guard(_lock);
    _table->put(static_cast<ucs_rcache_t*>(_cache), &used->super());
}

void* registration_cache::registration_of(const entry* used)
{
    return used->registration;
}

} // namespace ucxl::abi
