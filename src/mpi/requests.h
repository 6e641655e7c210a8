// What requests hold: windows, and packed bytes. It is given back when MPI says that the request has ended, in
// whichever call that is, or when a persistent one is freed.
//
// A call that may end requests takes out what they hold before it asks MPI, and puts back what is still needed: once a
// request has ended, MPI may give its handle to the next one of another thread. Handles of persistent requests stay
// until these are freed, so what they hold stays in the table.
//
// A running request that the program frees is not freed in MPI, which would not say when it has ended. It is looked at
// when others are freed. Before MPI ends it gets some more time. Then it is freed in MPI, and what it holds stays until
// MPI has ended.
#pragma once

#include "known_type.h"
#include "mpi_functions.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace ucxl::mpi
{

using held_windows = std::array<window_use, 2>;

class held
{
public:
    held()                       = default;
    virtual ~held()              = default;
    held(const held&)            = delete;
    held& operator=(const held&) = delete;

    // Before MPI starts the request, each time: packs what it sends.
    virtual void begin() {}
    // When it has ended, each time: unpacks what it received.
    virtual void end() {}
    // Whether end() does anything.
    virtual bool must_end() const { return false; }
    // Instead of end() if MPI failed: nobody knows what arrived.
    virtual void give_up() {}
    // Where it says that a thread is in a call that may end it, for others that may have to unpack what it received;
    // null if there are none. Under the lock of the table.
    virtual bool* in_call() { return nullptr; }

    held_windows windows;
    bool is_persistent = false;
    // Of one message. Open MPI refuses to free other requests while they run.
    bool is_message = false;

private:
    friend class requests;
    friend class ending_requests;
    std::mutex _lock;             // of `_is_running`, and held until end() is over: another thread may ask meanwhile
    bool _is_running     = false; // started, and not ended
    MPI_Request _request = MPI_REQUEST_NULL;
    MPI_Request* _place  = nullptr; // where the caller of a call that may end it has it
    held* _next          = nullptr; // in a chain of the table, of those that are freed, or of an ending_requests
    // Of persistent ones, which stay in the table during a call that may end them. Under the lock of the table.
    held* _next_asked = nullptr; // in the chain of that call
    bool _is_asked    = false;   // in such a chain
    bool _is_replaced = false;   // meanwhile MPI has given the handle to another request
};
using held_ptr = std::unique_ptr<held>;

class requests
{
public:
    // What a new request holds. One that is not persistent is running, or has ended.
    static void hold(MPI_Request request, held_ptr things) noexcept;
    static bool any() { return _number.load(std::memory_order_relaxed) > 0; }
    // Whether the program has freed one that was running.
    static bool has_freed() { return _has_freed.load(std::memory_order_relaxed); }
    static held_ptr take(MPI_Request request) noexcept;
    // Stays in the table. Null if the request holds nothing.
    static held* find(MPI_Request request) noexcept;
    // Before persistent requests are started.
    static void begin(int count, const MPI_Request* array) noexcept;
    // They could not be started.
    static void cancel_begin(int count, const MPI_Request* array) noexcept;
    // Whether it has ended, when no thread is in a call about it any more. If one ended it, its things have ended, too.
    static bool is_over(MPI_Request request, const bool& is_in_call) noexcept;
    // Whether another thread may ask is_over() about it.
    static bool may_be_asked(MPI_Request request) noexcept;
    // MPI said that the request has ended, but keeps it.
    static void note_end(MPI_Request request) noexcept;
    // What the program calls to free a request that may hold something, with MPI's function.
    static int free(MPI_Request* request, int (*next)(MPI_Request*)) noexcept;
    // Before MPI ends, not under a lock: MPI gets the running requests that the program has freed.
    static void hand_over_freed() noexcept;
    // From now on nobody asks for any. What they hold stays until release_kept(): MPI may use it while it ends. Returns
    // whether one of them is running.
    static bool keep_all() noexcept;
    // After MPI has ended.
    static void release_kept() noexcept;

private:
    friend class ending_requests;
    static void insert(held* things) noexcept;
    static held* remove(MPI_Request request) noexcept;
    static held* look_up(MPI_Request request) noexcept;
    static bool has_ended(MPI_Request request) noexcept;
    // Of one that the program frees: MPI alone would not say that it failed.
    static bool has_ended_unheard(MPI_Request request, bool& has_failed) noexcept;
    static void end(held& things, bool has_failed = false) noexcept;
    static void enter_call(held& things) noexcept;
    static void leave_call(held& things) noexcept;
    static void keep_freed(held_ptr things) noexcept;
    static held_ptr take_freed() noexcept;
    static void keep_until_end(held_ptr things) noexcept;
    static bool end_freed(held& things) noexcept;
    static held_ptr leave_asked(held& things) noexcept;
    static void end_some_freed() noexcept;

    static std::atomic<std::size_t> _number;
    static std::atomic<bool> _has_freed;
};

// What a call that may end requests said of them.
struct end_results {
    int of_call                = MPI_SUCCESS;
    const MPI_Status* statuses = nullptr; // null: it may have ended one, whose result is that of the call
    const int* indices         = nullptr; // of the requests that it names; null: it names all, in their order
    int number                 = 1;       // of those that it names, where there are indices
    const int* flag            = nullptr; // whether it names any; null: it does

    enum class fate { unnamed, ended, failed, unknown };
    // Of the request with this index, as far as the call says it. One that is pending is unnamed.
    fate fate_of(std::ptrdiff_t index) const noexcept;
    static int error_class(int result) noexcept;
};

// The things of some requests, during a call that may end them.
//
//     ending_requests ending(count, array);
//     const int result = PMPI_Waitall(count, array, statuses);
//     ending.settle({.of_call = result, .statuses = statuses});
class ending_requests
{
public:
    ending_requests(int count, MPI_Request* array) noexcept : _count(count), _array(array)
    {
        if (requests::any() && count > 0 && array != nullptr) [[unlikely]] {
            take();
        }
    }
    // Whether it matters which of the requests fail.
    bool may_unpack() const noexcept;
    // Puts back what requests still need, and releases the rest.
    void settle(const end_results& results) noexcept
    {
        if (_taken != nullptr) [[unlikely]] {
            put_back(results);
        }
        if (_persistent != nullptr) [[unlikely]] {
            end_persistent(results);
        }
    }

private:
    void take() noexcept;
    void put_back(const end_results& results) noexcept;
    void end_persistent(const end_results& results) noexcept;

    const int _count;
    MPI_Request* const _array;
    held* _taken      = nullptr;
    held* _persistent = nullptr;
};

} // namespace ucxl::mpi
