// A committed datatype: what is known of it (type_facts), for each count a layout and the windows that show buffers of
// it (buffer_windows), and what a report says of it (type_statistics). A window is used by one transfer or several at a
// time.
//
//     if (known_type* const type = find_known(datatype)) {
//         window_use use = type->borrow(buffer, count, direction::send);
//         if (use) PMPI_Send(use.address(), count, use.packed_type(), ...);
//     }
//
// Thread safe. The last reference ends it: that of the datatype's attribute, or of a transfer that outlives it.
#pragma once

#include "buffer_windows.h"
#include "type_facts.h"
#include "type_statistics.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ucxl::mpi
{

enum class direction : unsigned char { send, receive };

class known_type;

// A number of elements of a datatype.
struct counted_type {
    MPI_Count count;
    counted_layout elements;
    buffer_windows windows{};
    std::uint64_t last_use = 0;
    unsigned users         = 0; // transfers, which use windows
};

// Holds a window of a datatype for one transfer.
class window_use
{
public:
    window_use() = default;
    window_use(known_type& type, counted_type& counted, bound_window& window);
    window_use(window_use&& moved) noexcept;
    window_use& operator=(window_use&& moved) noexcept;
    window_use(const window_use&)            = delete;
    window_use& operator=(const window_use&) = delete;
    ~window_use();

    explicit operator bool() const { return _type != nullptr; }
    void* address() const { return _window->address; }
    MPI_Datatype packed_type() const;

private:
    known_type* _type      = nullptr;
    counted_type* _counted = nullptr;
    bound_window* _window  = nullptr;
};

class known_type
{
public:
    explicit known_type(MPI_Datatype type) : _facts(type) {}
    known_type(const known_type&)            = delete;
    known_type& operator=(const known_type&) = delete;

    MPI_Datatype handle() const { return _facts.type(); }

    // Whether MPI moves `count` elements, as was found out before. Takes no lock: this stands before every call.
    bool is_left(MPI_Count count) const
    {
        const MPI_Count left = _left_count.load(std::memory_order_relaxed);
        return left == count || left == all_counts;
    }
    // A window over `count` elements at the buffer; none if MPI shall move them, also by a layout that it does not know
    // of (layout_context). Does not throw.
    window_use borrow(const void* buffer, MPI_Count count, direction way) noexcept;
    // The same only if they go in one pass (one_pass.h). Does not throw.
    window_use borrow_for_one_pass(const void* buffer, MPI_Count count, direction way) noexcept;
    // The layout of `count` elements at the buffer, which may be a part of a longer window for one pass; null if it may
    // not. Adds to `sum` what it moves. Does not throw.
    type_layout_ptr layout_for_one_pass(const void* buffer, MPI_Count count, direction way, traffic& sum) noexcept;
    // The layout of the datatype itself; null if it is none. Does not throw.
    type_layout_ptr layout() noexcept;
    // What moves its messages in the place of Open MPI's engine, see ucp_datatypes.h; null if the engine does. Does not
    // throw.
    void* layout_context() noexcept { return _facts.is_learned() ? _facts.layout_context() : learned_layout_context(); }
    // Where layouts take the place of Open MPI's engine: whether that is as fast with it. Does not throw.
    bool is_fast_in_engine() noexcept { return is_learned_now() && _facts.is_fast_in_engine(); }
    // A layout of at least `count` elements, of which a prefix may be copied; null if MPI shall do it.
    type_layout_ptr layout_to_copy(MPI_Count count, direction way) noexcept;
    // Whether it is worth a window, or packed bytes instead of one. Does not throw.
    bool is_worth_window(MPI_Count count) noexcept;
    // As basic_type_of(). Does not throw.
    MPI_Datatype basic_type() noexcept;
    // As many bytes as an element: the same count of these is as many bytes, so what MPI derives from them is the same.
    MPI_Datatype packed_type() const { return _facts.packed_type(); }

    void note_message(MPI_Count bytes);
    void note_copy(MPI_Count bytes);

    void add_user() { _users.fetch_add(1, std::memory_order_relaxed); }
    void remove_user();
    void release(counted_type& counted, bound_window& window);

    // Unmaps what nobody uses. Before MPI ends.
    void release_windows();
    type_figures figures();

private:
    static constexpr MPI_Count all_counts = -2;

    ~known_type();
    // What the body returns; `otherwise` without memory. Under the lock, as all that follows.
    template <typename Result, typename Body>
    Result with_lock(Result otherwise, Body&& body) noexcept;
    void learn();
    counted_type& counted(MPI_Count count);
    void drop_oldest_count();
    void* learned_layout_context() noexcept;
    bool is_learned_now() noexcept
    {
        layout_context();
        return _facts.is_learned(); // not without memory
    }
    void note_moved_by_layout(MPI_Count count);
    // Whether some message of so many elements may go in one pass, if its buffer is in the heap.
    bool may_be_one_pass(MPI_Count count) const;
    void note_left(MPI_Count count);
    window_use lend(counted_type& used, bound_window& window);
    // Null if they may not go in one pass.
    counted_type* in_one_pass(const void* buffer, MPI_Count count, direction way);
    window_use window_for_one_pass(const void* buffer, MPI_Count count, direction way);

    std::atomic<unsigned> _users{1};
    // The latest count that is left to MPI, or all; none while a report counts these.
    std::atomic<MPI_Count> _left_count{-1};
    std::mutex _lock;
    type_facts _facts;
    type_statistics _statistics;
    std::vector<std::unique_ptr<counted_type>> _counted; // the latest one first
    std::uint64_t _uses = 0;
};

} // namespace ucxl::mpi
