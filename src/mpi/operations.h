// One-sided operations that use packed bytes. What a get brought is unpacked, and the bytes are given back, when MPI
// says that the operation has completed at this process: in a call that ends an epoch or flushes, or with its request.
//
//     pending_operations one;
//     one.push_back({win, target, std::make_shared<operation>()});
//     one.front().moved->set_result(...);
//     if (PMPI_Get(...) == MPI_SUCCESS) operations::add(std::move(one));
#pragma once

#include "mpi_functions.h"
#include "packed_side.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

namespace ucxl::mpi
{

class operation
{
public:
    operation()                            = default;
    operation(const operation&)            = delete;
    operation& operator=(const operation&) = delete;
    ~operation() { finish_without_unpacking(); }

    // Packed bytes that MPI reads, and those that it writes.
    void set_origin(packed_side&& side);
    void set_result(packed_side&& side);
    // It also completes with this one.
    void set_request(MPI_Request request) { _request = request; }
    // False if a call that completes operations has not completed this one: flushes of MPICH leave out some with
    // requests.
    bool may_finish() noexcept;
    // The first of several calls unpacks. The others return when that is done.
    void finish() noexcept;
    // Instead of finish() if its request failed.
    void give_up() noexcept;
    // Where its request says that a thread is in a call that may end it.
    bool* in_call() { return &_is_in_call; }
    bool is_done() const { return _is_done.load(std::memory_order_acquire); }

private:
    void finish_without_unpacking() noexcept;

    std::mutex _lock;
    std::atomic<bool> _is_done{false};
    std::optional<packed_side> _origin, _result;
    MPI_Request _request = MPI_REQUEST_NULL;
    bool _is_in_call     = false; // under the lock of requests
};
using operation_ptr = std::shared_ptr<operation>;

// An operation of a window and a target.
struct pending_operation {
    MPI_Win win;
    int target;
    operation_ptr moved;
    // The order in which they were added.
    std::uint64_t number = 0;
    // The calls that may complete it and have not returned yet. It stays in the list for them.
    std::size_t ending_calls = 0;
};
using pending_operations = std::list<pending_operation>;

class operations
{
public:
    // Programs may start any number of them before they wait for one. Beyond so many packed bytes MPI gets the buffers.
    static constexpr std::size_t max_length = 256ULL << 20;

    static bool has_room() { return _length.load(std::memory_order_relaxed) < max_length; }
    static bool any() { return _number.load(std::memory_order_relaxed) > 0; }
    // A list of one, because making it can fail.
    static void add(pending_operations&& one) noexcept;

private:
    friend class operation;
    friend class ending_operations;
    static std::atomic<std::size_t> _number, _length;
};

// The operations that a call may complete: those of a window and a target that were added before the call. They stay in
// the list until they are unpacked, because a flush of another thread must not return earlier.
//
//     ending_operations ending(win, rank);
//     return ending.settle(PMPI_Win_flush(rank, win));
class ending_operations
{
public:
    static constexpr int all_targets = -1;

    ending_operations(MPI_Win win, int target) noexcept : _win(win), _target(target)
    {
        if (operations::any()) [[unlikely]] {
            hold();
        }
    }
    // Completes them, unless MPI failed: then a later call does. Returns the result.
    int settle(int result) noexcept
    {
        if (_last_number != 0) [[unlikely]] {
            release(result == MPI_SUCCESS);
        }
        return result;
    }

private:
    bool has(const pending_operation& each) const
    {
        return each.win == _win && (_target == all_targets || each.target == _target);
    }
    void hold() noexcept;
    void release(bool are_complete) noexcept;

    const MPI_Win _win;
    const int _target;
    // Of the last operation that this holds.
    std::uint64_t _last_number = 0;
};

} // namespace ucxl::mpi
