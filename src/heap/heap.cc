#include "heap.h"

#include "memory_limit.h"
#include "settings.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#define JEMALLOC_NO_RENAME // the build renames the functions in the static library
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

// jemalloc's options; MALLOC_CONF in the environment changes them. All of its own arenas stay empty.
extern "C" const char* je_malloc_conf;
const char* je_malloc_conf = "narenas:1,tcache:false,retain:true,dirty_decay_ms:1000,muzzy_decay_ms:0";

namespace ucxl::heap
{

constinit std::atomic<std::size_t> min_length{SIZE_MAX};

namespace
{

// jemalloc asks for whole huge pages, so aligned, for its own records, and for nothing else.
constexpr std::size_t record_alignment = std::size_t{2} << 20;
constexpr std::size_t max_alignment    = record_alignment / 2;

// It is rounded up to 64 MB, as long as the first piece of the range.
constexpr std::size_t first_extent = std::size_t{56} << 20;

enum class state : int { unused, starting, in_use, out };

// After so many new bytes, at most, the limit on memory is looked at again. All processes of a group do that.
constexpr std::size_t max_unseen = std::size_t{128} << 20;

std::atomic<state> now{state::unused};
int arena_flags;
char purge_arena[32]; // what je_mallctl() calls it
memory_limit group_limit;
std::size_t bytes_between_looks; // at the limit; 0 if there is none
std::atomic<std::size_t> unseen_bytes{0};
settings chosen;
pthread_mutex_t range_lock = PTHREAD_MUTEX_INITIALIZER; // of heap_range.take()
int cancellation           = PTHREAD_CANCEL_ENABLE;     // of the thread that forks, before

// Whether this thread is inside of jemalloc.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_inside = false;
// Blocks that were released by calls from within. Each begins with the address of the next one.
std::atomic<void*> postponed{nullptr};

class range_guard
{
public:
    range_guard() { pthread_mutex_lock(&range_lock); }
    ~range_guard() { pthread_mutex_unlock(&range_lock); }
    range_guard(const range_guard&)            = delete;
    range_guard& operator=(const range_guard&) = delete;
};

// What a thread does in jemalloc; with the errno from before, as free() has to leave it. malloc() is no cancellation
// point, and a thread that ended in it would keep the locks.
class inside
{
public:
    inside()
    {
        is_inside = true;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &_cancellation);
    }
    ~inside()
    {
        pthread_setcancelstate(_cancellation, nullptr);
        is_inside = false;
        errno     = _errno;
    }
    inside(const inside&)            = delete;
    inside& operator=(const inside&) = delete;

private:
    const int _errno  = errno;
    int _cancellation = PTHREAD_CANCEL_ENABLE;
};

void* take(extent_hooks_t* /*hooks*/, void* address, std::size_t length, std::size_t alignment, bool* zero,
           bool* commit, unsigned /*arena*/)
{
    std::byte* taken = nullptr;
    if (alignment >= record_alignment && address == nullptr) {
        // Peers can write what they map, and shall not see these.
        void* const mapped = mmap(nullptr, length + alignment, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            return nullptr;
        }
        taken =
            reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(mapped) + alignment - 1) & ~(alignment - 1));
    } else {
        const range_guard guard;
        taken = address != nullptr ? heap_range.take_at(static_cast<std::byte*>(address), length)
                                   : heap_range.take(length, alignment);
    }
    if (taken != nullptr) {
        *zero   = true;
        *commit = true;
    }
    return taken;
}

bool punch(extent_hooks_t* /*hooks*/, void* address, std::size_t /*length*/, std::size_t offset, std::size_t length,
           unsigned /*arena*/)
{
    return !heap_range.punch(static_cast<std::byte*>(address) + offset, length);
}

bool split(extent_hooks_t* /*hooks*/, void* /*address*/, std::size_t /*length*/, std::size_t /*one*/,
           std::size_t /*other*/, bool /*is_committed*/, unsigned /*arena*/)
{
    return false;
}

// A block lies in one piece, because a window has to.
bool merge(extent_hooks_t* /*hooks*/, void* one, std::size_t /*length*/, void* other, std::size_t /*other_length*/,
           bool /*is_committed*/, unsigned /*arena*/)
{
    return !heap_range.are_in_one_piece(static_cast<std::byte*>(one), static_cast<std::byte*>(other));
}

extent_hooks_t hooks = {.alloc        = take,
                        .dalloc       = nullptr, // jemalloc keeps the addresses
                        .destroy      = nullptr,
                        .commit       = nullptr,
                        .decommit     = nullptr,
                        .purge_lazy   = nullptr,
                        .purge_forced = punch,
                        .split        = split,
                        .merge        = merge};

bool make_arena()
{
    unsigned arena        = 0;
    std::size_t length    = sizeof(arena);
    extent_hooks_t* given = &hooks;
    if (je_mallctl("arenas.create", &arena, &length, &given, sizeof(given)) != 0) {
        return false;
    }
    arena_flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    std::snprintf(purge_arena, sizeof(purge_arena), "arena.%u.purge", arena);
    // By default jemalloc gives blocks of 8 MB and more back to the system at once. Getting them again takes longer
    // than what most programs do with them.
    char name[64];
    std::snprintf(name, sizeof(name), "arena.%u.oversize_threshold", arena);
    std::size_t never = std::size_t{1} << 46;
    if (je_mallctl(name, nullptr, nullptr, &never, sizeof(never)) != 0) {
        return false;
    }
    // From now on jemalloc takes more than this at a time, and a block that grows has room behind it. Nothing is
    // touched.
    if (void* const first = je_mallocx(first_extent, arena_flags)) {
        je_dallocx(first, arena_flags);
    }
    return true;
}

void end_fork()
{
    const int before = cancellation;
    pthread_mutex_unlock(&range_lock);
    pthread_setcancelstate(before, nullptr);
}

// Free blocks may lie where nothing can be read, so all new ones are plain memory from now on. Those of which only
// their own memory tells that they are to be released stay.
void leave_lost_memory()
{
    min_length.store(SIZE_MAX, std::memory_order_relaxed);
    postponed.store(nullptr, std::memory_order_relaxed);
}

// An allocation has jemalloc's locks when it takes this one, so fork has to take them first, too. What is registered
// last is called first, and a constructor of jemalloc registers its handlers. The library is linked to be the first
// that is initialised (-z initfirst): handlers of the program's libraries allocate before a fork, and write into
// their blocks in the child. fork() is no cancellation point, and a thread that ended in it would keep all locks.
// The C library has not seen the environment yet, which it gives to constructors.
[[gnu::constructor(101)]] void hold_over_fork(int /*argc*/, char** /*argv*/, char** variables)
{
    if (environ == nullptr) {
        environ = variables;
    }
    forking_thread::learn_record_length();
    pthread_atfork(
        [] {
            pthread_mutex_lock(&range_lock);
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
            heap_range.before_fork();
        },
        [] {
            heap_range.after_fork_in_parent();
            end_fork();
        },
        [] {
            if (!heap_range.after_fork_in_child()) {
                leave_lost_memory();
            }
            end_fork();
        });
}

// Other threads get plain memory meanwhile.
bool begin()
{
    state seen = state::unused;
    if (!now.compare_exchange_strong(seen, state::starting)) {
        return seen == state::in_use;
    }
    const inside guard;
    const char* reason = heap_range.reserve(chosen.limit, chosen.has_huge_pages);
    if (reason == nullptr && !make_arena()) {
        reason = "jemalloc has no arena for it";
    }
    if (reason != nullptr) {
        log_stays_out(reason);
        min_length.store(SIZE_MAX, std::memory_order_relaxed);
        now.store(state::out);
        return false;
    }
    if (group_limit.find("/proc/self/cgroup", "/sys/fs/cgroup")) {
        bytes_between_looks = std::clamp(group_limit.bytes() / 16, std::size_t{1}, max_unseen);
    }
    now.store(state::in_use);
    return true;
}

bool is_in_use()
{
    const state seen = now.load(std::memory_order_acquire);
    return seen == state::in_use || (seen == state::unused && begin());
}

// Near the limit freed blocks go back to the system at once. That makes getting memory slow, so it is not the rule.
void make_room_for(std::size_t length)
{
    if (bytes_between_looks == 0 ||
        unseen_bytes.fetch_add(length, std::memory_order_relaxed) + length < bytes_between_looks) {
        return;
    }
    unseen_bytes.store(0, std::memory_order_relaxed);
    if (group_limit.is_near()) {
        je_mallctl(purge_arena, nullptr, nullptr, nullptr, 0);
    }
}

void postpone(void* block)
{
    void* next = postponed.load(std::memory_order_relaxed);
    do {
        *static_cast<void**>(block) = next;
    } while (!postponed.compare_exchange_weak(next, block, std::memory_order_release, std::memory_order_relaxed));
}

void release_postponed()
{
    if (postponed.load(std::memory_order_relaxed) == nullptr) {
        return;
    }
    for (void* block = postponed.exchange(nullptr, std::memory_order_acquire); block != nullptr;) {
        void* const next = *static_cast<void**>(block);
        je_dallocx(block, arena_flags);
        block = next;
    }
}

} // namespace

void start()
{
    chosen = settings::read();
    min_length.store(chosen.min, std::memory_order_relaxed);
}

void* allocate(std::size_t length, std::size_t alignment, contents filled)
{
    if (is_inside || alignment > max_alignment || !is_in_use()) {
        return nullptr;
    }
    const inside guard;
    release_postponed();
    make_room_for(length);
    return je_mallocx(length, arena_flags | MALLOCX_ALIGN(alignment) | (filled == contents::zero ? MALLOCX_ZERO : 0));
}

void* resize(void* block, std::size_t length)
{
    if (is_inside) {
        return nullptr;
    }
    const inside guard;
    release_postponed();
    make_room_for(length);
    return je_rallocx(block, length, arena_flags);
}

void release(void* block)
{
    if (is_inside) {
        postpone(block);
        return;
    }
    const inside guard;
    je_dallocx(block, arena_flags);
    release_postponed();
}

std::size_t usable_length(const void* block)
{
    return je_sallocx(block, 0);
}

} // namespace ucxl::heap

// By libucp_layout; see sys/heap_memory.h
extern "C" [[gnu::visibility("default")]] int ucx_layout_heap_memory(unsigned piece, ucxl::heap_memory* memory);

int ucx_layout_heap_memory(unsigned piece, ucxl::heap_memory* memory)
{
    return ucxl::heap::heap_range.tell(piece, *memory);
}
