// One-sided operations with derived datatypes at the origin, and numbers or the same datatype at the target.
#include "calls.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace ucxl::test
{
namespace
{

enum class operation : unsigned char { put, get, accumulate, get_accumulate, fetch };
enum class synchronization : unsigned char { fence, post_start, lock, flush, flush_local, flush_all, request };

struct one_sided {
    operation what;
    synchronization how;
    bool is_large     = false; // MPI_..._c
    bool is_typed     = false; // the target has the datatype of the origin
    bool is_allocated = false; // by MPI
};

// The arguments of one operation on the peer.
struct moved {
    elements& from;
    elements& into; // what get_accumulate brings
    int peer;
    MPI_Aint place;
    int count; // at the target
    MPI_Datatype type;
    MPI_Win win;
};

// The first kind of functions has no request.
template <typename Put, typename Get, typename Accumulate, typename Get_accumulate, typename... Request>
void start(operation what, const moved& at, Put* put, Get* get, Accumulate* accumulate, Get_accumulate* get_accumulate,
           Request... request)
{
    elements& from = at.from;
    elements& into = at.into;
    switch (what) {
    case operation::put:
        put(from.buffer(), from.count, from.handle(), at.peer, at.place, at.count, at.type, at.win, request...);
        break;
    case operation::get:
        get(into.buffer(), into.count, into.handle(), at.peer, at.place, at.count, at.type, at.win, request...);
        break;
    case operation::accumulate:
        accumulate(from.buffer(), from.count, from.handle(), at.peer, at.place, at.count, at.type, MPI_SUM, at.win,
                   request...);
        break;
    case operation::get_accumulate:
        get_accumulate(from.buffer(), from.count, from.handle(), into.buffer(), into.count, into.handle(), at.peer,
                       at.place, at.count, at.type, MPI_SUM, at.win, request...);
        break;
    case operation::fetch:
        get_accumulate(nullptr, 0, MPI_INT, into.buffer(), into.count, into.handle(), at.peer, at.place, at.count,
                       at.type, MPI_NO_OP, at.win, request...);
        break;
    }
}

void start_plain(const one_sided& chosen, const moved& at)
{
#if MPI_VERSION >= 4
    if (chosen.is_large) {
        start(chosen.what, at, MPI_Put_c, MPI_Get_c, MPI_Accumulate_c, MPI_Get_accumulate_c);
        return;
    }
#endif
    start(chosen.what, at, MPI_Put, MPI_Get, MPI_Accumulate, MPI_Get_accumulate);
}

void start_requested(const one_sided& chosen, const moved& at, MPI_Request* request)
{
#if MPI_VERSION >= 4
    if (chosen.is_large) {
        start(chosen.what, at, MPI_Rput_c, MPI_Rget_c, MPI_Raccumulate_c, MPI_Rget_accumulate_c, request);
        return;
    }
#endif
    start(chosen.what, at, MPI_Rput, MPI_Rget, MPI_Raccumulate, MPI_Rget_accumulate, request);
}

// One operation in an epoch of its own. `arrived` is called as soon as the program may use what came.
template <typename Arrived>
void in_epoch(const one_sided& chosen, const moved& at, Arrived arrived)
{
    switch (chosen.how) {
    case synchronization::fence:
        MPI_Win_fence(0, at.win);
        start_plain(chosen, at);
        MPI_Win_fence(0, at.win);
        arrived();
        break;
    case synchronization::post_start: {
        MPI_Group all, peer;
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, 1, &at.peer, &peer);
        MPI_Win_post(peer, 0, at.win);
        MPI_Win_start(peer, 0, at.win);
        start_plain(chosen, at);
        MPI_Win_complete(at.win);
        arrived();
        MPI_Win_wait(at.win);
        MPI_Group_free(&peer);
        MPI_Group_free(&all);
        break;
    }
    case synchronization::lock:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, at.peer, 0, at.win);
        start_plain(chosen, at);
        MPI_Win_unlock(at.peer, at.win);
        arrived();
        break;
    case synchronization::flush:
        MPI_Win_lock(MPI_LOCK_SHARED, at.peer, 0, at.win);
        start_plain(chosen, at);
        MPI_Win_flush(at.peer, at.win);
        arrived();
        MPI_Win_unlock(at.peer, at.win);
        break;
    case synchronization::flush_local:
        MPI_Win_lock_all(0, at.win);
        start_plain(chosen, at);
        MPI_Win_flush_local(at.peer, at.win);
        arrived();
        MPI_Win_unlock_all(at.win);
        break;
    case synchronization::flush_all:
        MPI_Win_lock_all(0, at.win);
        start_plain(chosen, at);
        if (chosen.is_typed) {
            MPI_Win_flush_all(at.win);
        } else {
            MPI_Win_flush_local_all(at.win);
        }
        arrived();
        MPI_Win_unlock_all(at.win);
        break;
    case synchronization::request: {
        MPI_Request request;
        MPI_Win_lock_all(0, at.win);
        start_requested(chosen, at, &request);
        if (chosen.is_typed) {
            // Complete before the program asks for the request.
            MPI_Win_flush_local(at.peer, at.win);
            arrived();
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(request == MPI_REQUEST_NULL, "the request goes on");
        arrived();
        MPI_Win_unlock_all(at.win);
        break;
    }
    }
}

// The sums of numbers, which wrap around.
bytes added(const bytes& a, const bytes& b)
{
    bytes sums(a.size());
    for (std::size_t i = 0; i + basic_size <= a.size(); i += basic_size) {
        unsigned x = 0, y = 0;
        std::memcpy(&x, &a[i], basic_size);
        std::memcpy(&y, &b[i], basic_size);
        x += y;
        std::memcpy(&sums[i], &x, basic_size);
    }
    return sums;
}

// Whether a target may have this datatype in every MPI.
bool is_usable(elements& drawn)
{
    // Open MPI refuses targets that begin before the window.
    if (!is_unique(drawn) || static_cast<unsigned char*>(drawn.buffer()) < drawn.memory.bytes().data()) {
        return false;
    }
    // Accumulate of Open MPI 5.0.7 over UCX takes one block for one at the start of the buffer.
    return !is_openmpi() || has_gaps(drawn);
}

std::unique_ptr<elements> draw_elements(round_seed seed)
{
    for (std::uint64_t i = 0;; ++i) {
        auto drawn = std::make_unique<elements>(derive_seed(seed, 300 + i));
        if (is_usable(*drawn)) {
            return drawn;
        }
    }
}

// With libucx_layout_heap, memory of so many bytes is shared.
constexpr std::size_t in_heap = 256 << 10;

// Every process works on the memory of its peer, which works on its own.
void run_one_sided(const one_sided& chosen, round_seed seed)
{
    const int peer    = own_rank ^ 1;
    const auto filled = [&](std::uint64_t stream, int rank) {
        auto made = draw_elements(seed);
        random numbers(derive_seed(seed, 10 * stream + static_cast<std::uint64_t>(rank)));
        made->memory.fill(numbers);
        return made;
    };
    const auto from = filled(1, own_rank), into = filled(2, own_rank), from_peer = filled(1, peer);
    // The memory of the window is that of elements, or as many numbers.
    auto exposed         = filled(3, own_rank);
    const auto of_peer   = filled(3, peer);
    const bytes own_old  = exposed->memory.packed();
    const bytes peer_old = of_peer->memory.packed();
    bytes plain          = own_old;
    bytes& memory        = chosen.is_typed ? exposed->memory.bytes() : plain;
    memory.reserve(in_heap);
    const MPI_Aint place    = chosen.is_typed ? static_cast<unsigned char*>(exposed->buffer()) - memory.data() : 0;
    const bytes into_before = into->memory.bytes(), from_before = from->memory.bytes();
    current_call = "one-sided operation " + std::to_string(static_cast<int>(chosen.what)) + ", synchronization " +
                   std::to_string(static_cast<int>(chosen.how)) + (chosen.is_typed ? ", typed" : "") +
                   (chosen.is_allocated ? ", allocated" : "") + ", " + std::to_string(from->count) + " of " +
                   from->type.text();
    MPI_Win win;
    void* base = memory.data();
    if (chosen.is_allocated) {
        MPI_Win_allocate(static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                         static_cast<void*>(&base), &win);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, own_rank, 0, win);
        std::memcpy(base, memory.data(), memory.size());
        MPI_Win_unlock(own_rank, win);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Win_create(base, static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    const moved at{*from,
                   *into,
                   peer,
                   place,
                   chosen.is_typed ? from->count : static_cast<int>(plain.size() / basic_size),
                   chosen.is_typed ? from->handle() : MPI_INT,
                   win};
    in_epoch(chosen, at, [&] {
        if (chosen.what == operation::put || chosen.what == operation::accumulate) {
            expect(into->memory.bytes() == into_before, "memory without an operation changed");
        } else {
            expect_arrived(*into, into_before, peer_old);
        }
        expect(from->memory.bytes() == from_before, "the memory of the origin changed");
    });
    MPI_Barrier(MPI_COMM_WORLD);
    if (chosen.is_allocated) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, own_rank, 0, win);
        std::memcpy(memory.data(), base, memory.size());
        MPI_Win_unlock(own_rank, win);
    }
    MPI_Win_free(&win);
    const bytes sent   = from_peer->memory.packed();
    const bytes wanted = chosen.what == operation::put ? sent
                         : chosen.what == operation::accumulate || chosen.what == operation::get_accumulate
                             ? added(own_old, sent)
                             : own_old;
    expect((chosen.is_typed ? exposed->memory.packed() : plain) == wanted, "wrong bytes in the window");
}

// A get into memory of the window itself, which others get from in the next epoch.
void run_get_into_window(round_seed seed)
{
    const int peer = own_rank ^ 1;
    const auto own = draw_elements(seed), other = draw_elements(seed);
    own->memory.bytes().reserve(in_heap);
    current_call     = "get into the window, " + own->type.text();
    const auto place = static_cast<unsigned char*>(own->buffer()) - own->memory.bytes().data();
    random own_numbers(derive_seed(seed, static_cast<std::uint64_t>(own_rank)));
    random peer_numbers(derive_seed(seed, static_cast<std::uint64_t>(peer)));
    own->memory.fill(own_numbers);
    other->memory.fill(peer_numbers);
    bytes before     = own->memory.bytes();
    const bytes sent = (own_rank % 2 == 0 ? other : own)->memory.packed();
    MPI_Win win;
    MPI_Win_create(own->memory.bytes().data(), static_cast<MPI_Aint>(own->memory.bytes().size()), 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    if (own_rank % 2 == 0) {
        MPI_Get(own->buffer(), own->count, own->handle(), peer, place, own->count, own->handle(), win);
    }
    MPI_Win_fence(0, win);
    if (own_rank % 2 == 1) {
        // So that what comes back differs from what is there.
        own->memory.fill(own_numbers);
        before = own->memory.bytes();
        MPI_Get(own->buffer(), own->count, own->handle(), peer, place, own->count, own->handle(), win);
    }
    MPI_Win_fence(0, win);
    // All have what the odd ranks had.
    expect_arrived(*own, before, sent);
    MPI_Win_free(&win);
}

// Many operations before they are completed, some of them to no process, and none of them wrong.
void run_many_operations(round_seed seed)
{
    constexpr int number = 12;
    const int peer       = own_rank ^ 1;
    const auto drawn     = draw_elements(seed);
    const int length     = static_cast<int>(drawn->length());
    current_call         = "many operations of " + drawn->type.text();
    bytes memory(static_cast<std::size_t>(length * number));
    memory.reserve(in_heap);
    std::vector<typed_memory> puts, gets;
    std::vector<bytes> before;
    for (std::size_t i = 0; i < number; ++i) {
        puts.emplace_back(drawn->handle(), drawn->count);
        gets.emplace_back(drawn->handle(), drawn->count);
        fill_for(puts.back(), seed + i, own_rank);
        fill_for(gets.back(), seed + 100 + i, own_rank);
        before.push_back(gets.back().bytes());
    }
    MPI_Win win;
    MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < number; ++i) {
        MPI_Put(puts[static_cast<std::size_t>(i)].buffer(), drawn->count, drawn->handle(), peer, i * length,
                length / basic_size, MPI_INT, win);
        MPI_Put(puts[0].buffer(), drawn->count, drawn->handle(), MPI_PROC_NULL, 0, length / basic_size, MPI_INT, win);
    }
    MPI_Win_flush(peer, win);
    for (int i = 0; i < number; ++i) {
        MPI_Get(gets[static_cast<std::size_t>(i)].buffer(), drawn->count, drawn->handle(), peer, i * length,
                length / basic_size, MPI_INT, win);
        MPI_Get(puts[0].buffer(), drawn->count, drawn->handle(), MPI_PROC_NULL, 0, length / basic_size, MPI_INT, win);
    }
    MPI_Win_unlock_all(win);
    for (std::size_t i = 0; i < number; ++i) {
        typed_memory wanted(drawn->handle(), drawn->count);
        wanted.bytes() = before[i];
        wanted.unpack(puts[i].packed());
        expect_same(wanted, gets[i], "what was put and got back");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

// Numbers that each process shows to all, which are locked, and the datatype that leaves gaps between them.
class shown_numbers
{
public:
    explicit shown_numbers(unsigned columns) : _columns(columns), _memory(columns)
    {
        for (unsigned i = 0; i < columns; ++i) {
            _memory[i] = value_at(own_rank, i);
        }
        MPI_Type_vector(static_cast<int>(columns), 1, 2, MPI_UNSIGNED, &type);
        MPI_Type_commit(&type);
        MPI_Win_create(_memory.data(), static_cast<MPI_Aint>(columns * sizeof(unsigned)), 1, MPI_INFO_NULL,
                       MPI_COMM_WORLD, &win);
        MPI_Win_lock_all(0, win);
    }
    shown_numbers(const shown_numbers&)            = delete;
    shown_numbers& operator=(const shown_numbers&) = delete;
    ~shown_numbers()
    {
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
        MPI_Type_free(&type);
    }

    unsigned value_at(int rank, unsigned i) const { return static_cast<unsigned>(rank) * _columns + i + 1; }

    MPI_Datatype type;
    MPI_Win win;

private:
    unsigned _columns;
    std::vector<unsigned> _memory;
};

// Several threads get, each into memory of its own, and flush the same target. A flush completes the gets of all
// threads, and none may return before its own get is in memory, whichever flush brings it.
void run_flushing_threads(round_seed seed)
{
    constexpr int number = 3, turns = 50, columns = 1 << 18;
    const int peer = own_rank ^ 1;
    current_call   = "flushing threads";
    const shown_numbers shown(columns);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < number; ++thread) {
        threads.emplace_back([&, thread] {
            random numbers(derive_seed(seed, static_cast<std::uint64_t>(10 * own_rank + thread)));
            std::vector<unsigned> got(2 * columns);
            for (int turn = 0; turn < turns; ++turn) {
                std::ranges::fill(got, 0u);
                MPI_Get(got.data(), 1, shown.type, peer, 0, columns, MPI_UNSIGNED, shown.win);
                std::this_thread::sleep_for(std::chrono::microseconds(numbers.below(1000)));
                MPI_Win_flush(peer, shown.win);
                for (unsigned i = 0; i < columns; ++i) {
                    if (got[2 * i] != shown.value_at(peer, i) || got[2 * i + 1] != 0) {
                        ++wrong;
                        break;
                    }
                }
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    expect(wrong == 0, std::to_string(wrong) + " of " + std::to_string(number * turns) + " gets were not complete");
}

// One thread tests the request of a get while another one flushes: what the flush completes has to be in memory then,
// also where it is the other thread that brings it.
void run_flush_beside_test(round_seed /*seed*/)
{
    constexpr int turns = 50, columns = 1 << 20;
    const int peer = own_rank ^ 1;
    current_call   = "a flush beside a test";
    const shown_numbers shown(columns);
    std::vector<unsigned> got(2 * columns);
    int wrong = 0;
    for (int turn = 0; turn < turns; ++turn) {
        std::ranges::fill(got, 0u);
        MPI_Request request;
        MPI_Rget(got.data(), 1, shown.type, peer, 0, columns, MPI_UNSIGNED, shown.win, &request);
        std::thread other([&] {
            for (int has_ended = 0; has_ended == 0;) {
                MPI_Test(&request, &has_ended, MPI_STATUS_IGNORE);
            }
        });
        MPI_Win_flush(peer, shown.win);
        wrong += got[2 * (columns - 1)] != shown.value_at(peer, columns - 1) ? 1 : 0;
        other.join();
    }
    expect(wrong == 0, std::to_string(wrong) + " of " + std::to_string(turns) + " gets were not complete");
}

// No datatype, with a window that returns errors, in a program whose communicators do not.
void run_errors_of_window(round_seed /*seed*/)
{
    const int peer = own_rank ^ 1, number = 7;
    int* memory = nullptr;
    MPI_Win win;
    current_call = "errors of a window";
    MPI_Win_allocate(sizeof(number), sizeof(number), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    for (const bool is_origin : {true, false}) {
        const MPI_Datatype origin = is_origin ? MPI_DATATYPE_NULL : MPI_INT;
        const MPI_Datatype target = is_origin ? MPI_INT : MPI_DATATYPE_NULL;
        int kind                  = 0;
        MPI_Error_class(MPI_Put(&number, 1, origin, peer, 0, 1, target, win), &kind);
        expect(kind == MPI_ERR_TYPE, "no datatype in a put is another error: " + std::to_string(kind));
        int received = 0;
        MPI_Error_class(MPI_Get(&received, 1, origin, peer, 0, 1, target, win), &kind);
        expect(kind == MPI_ERR_TYPE, "no datatype in a get is another error: " + std::to_string(kind));
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

} // namespace

void add_one_sided_calls(std::vector<call_test>& calls)
{
    const char* const names[] = {"put", "get", "accumulate", "get-accumulate", "fetch"};
    const char* const ways[]  = {"fence", "post", "lock", "flush", "flush-local", "flush-all", "request"};
    std::vector<call_test> all;
    for (int what = 0; what < 5; ++what) {
        for (int how = 0; how < 7; ++how) {
            all.push_back({std::string(names[what]) + "-" + ways[how],
                           [what, how](round_seed seed) {
                               one_sided chosen{static_cast<operation>(what), static_cast<synchronization>(how)};
                               chosen.is_typed     = seed % 2 == 0;
                               chosen.is_large     = seed / 2 % 2 == 0;
                               chosen.is_allocated = seed / 4 % 2 == 0 && how > 1;
                               // MPICH 4.2.1 says too early that MPI_Rget with a derived datatype has ended. The
                               // library stands before it where the origin is more than one block.
                               const bool ends_early = is_mpich() && chosen.how == synchronization::request;
                               chosen.is_typed       = chosen.is_typed && !ends_early;
                               if (ends_early && chosen.what == operation::get && !has_gaps(*draw_elements(seed))) {
                                   return;
                               }
                               run_one_sided(chosen, seed);
                           },
                           true});
        }
    }
    all.push_back({"get-into-window", run_get_into_window, true});
    all.push_back({"many-operations", run_many_operations, true});
    all.push_back({"errors-of-window", run_errors_of_window, true});
    calls.insert(calls.end(), all.begin(), all.end());
    calls.push_back({"threads-flush", run_flushing_threads, true});
    calls.push_back({"threads-test", run_flush_beside_test, true});
    // By name only: Open MPI 5.0.7 over its own transports ends now and then, or brings wrong bytes.
    calls.push_back({"one-sided",
                     [all](round_seed seed) {
                         for (std::size_t i = 0; i < all.size(); ++i) {
                             all[i].run(derive_seed(seed, i));
                         }
                     },
                     true});
}

} // namespace ucxl::test
