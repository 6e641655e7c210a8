// A committed datatype, what is known of it, and the windows that show buffers of it.
//
// Nothing is found out before the first transfer: most datatypes are only parts of others. For each count there is a
// layout, and for each buffer a window. A window is used by one transfer or several at a time. Unused windows are kept,
// because programs send the same buffers again and again; the oldest one is bound to another buffer when one is needed.
//
//     if (known_type* const type = find_known(datatype)) {
//         window_use use = type->borrow(buffer, count, direction::send);
//         if (use) PMPI_Send(use.address(), count, use.packed_type(), ...);
//     }
//
// Thread safe. The last reference ends it: that of the datatype's attribute, or of a transfer that outlives it.
#pragma once

#include "rule.h"
#include "type_layout.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::mpi
{

enum class direction : unsigned char { send, receive };

class known_type;

// A window over one buffer. The address is that of its first byte.
struct bound_window {
    const void* base           = nullptr;
    ucp_layout_window_h handle = nullptr;
    void* address              = nullptr;
    unsigned users             = 0;
    std::uint64_t last_use     = 0;
    std::uint64_t copied       = 0; // what the CPU had moved through it when it was mapped
};

// A number of elements of a datatype.
struct counted_type {
    MPI_Count count = 0;
    type_layout_ptr layout; // null: it is none
    traffic moved;
    bool is_unique      = false;   // no byte twice, so it can be received
    const char* why_not = nullptr; // null: a window is worth it
    std::vector<std::unique_ptr<bound_window>> windows;
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

// What a report says of a datatype.
struct type_figures {
    std::string name;
    std::size_t length = 0, num_blocks = 0; // of the longest transfer
    std::uint64_t messages = 0, copies = 0, bytes = 0;
    std::uint64_t by_cpu = 0;            // bytes that the CPU moved through windows, as far as these have ended
    std::uint64_t left   = 0;            // transfers that MPI did
    std::string why_not;                 // the reason for the last one of these
    std::optional<double> seconds_saved; // none: not measured
    std::string constructor;
};

class known_type
{
public:
    explicit known_type(MPI_Datatype type) : _type(type) {}
    known_type(const known_type&)            = delete;
    known_type& operator=(const known_type&) = delete;

    MPI_Datatype handle() const { return _type; }

    // Whether MPI moves `count` elements, as was found out before. Takes no lock: this stands before every call.
    bool is_left(MPI_Count count) const
    {
        const MPI_Count left = _left_count.load(std::memory_order_relaxed);
        return left == count || left == all_counts;
    }
    // A window over `count` elements at the buffer; none if MPI shall move them, also by a layout that it does not know
    // of (layout_context). Does not throw.
    window_use borrow(const void* buffer, MPI_Count count, direction way) noexcept;
    // The layout of the datatype itself; null if it is none. Does not throw.
    type_layout_ptr layout() noexcept;
    // What moves its messages in the place of Open MPI's engine, see ucp_datatypes.h; null if the engine does. Does not
    // throw.
    void* layout_context() noexcept
    {
        return _is_learned.load(std::memory_order_acquire) ? _layout_context : learned_layout_context();
    }
    // A layout of at least `count` elements, of which a prefix may be copied; null if MPI shall do it.
    type_layout_ptr layout_to_copy(MPI_Count count, direction way) noexcept;
    // Whether it is worth a window, or packed bytes instead of one. Does not throw.
    bool is_worth_window(MPI_Count count) noexcept;
    // As basic_type_of(). Does not throw.
    MPI_Datatype basic_type() noexcept;
    // As many bytes as an element: the same count of these is as many bytes, so what MPI derives from them is the same.
    MPI_Datatype packed_type() const { return _packed.load(std::memory_order_acquire); }

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
    counted_type* counted(MPI_Count count);
    std::unique_ptr<counted_type> count_anew(MPI_Count count);
    void unmap(bound_window& window);
    void unmap_unused(counted_type& counted);
    void drop_oldest_count();
    void learn();
    void* learned_layout_context() noexcept;
    void make_layout_datatype();
    void note_why_not(const char* reason);
    void note_moved_by_layout(MPI_Count count);
    void measure_saving();

    const MPI_Datatype _type;
    std::atomic<unsigned> _users{1};
    // The latest count that is left to MPI, or all; none while a report counts these.
    std::atomic<MPI_Count> _left_count{-1};
    std::mutex _lock;
    // All below: under the lock.
    std::atomic<bool> _is_learned{false};
    ucp_datatype_t _layout_datatype = 0; // 0: windows
    void* _layout_context           = nullptr;
    type_layout_ptr _layout;
    const char* _why_no_layout = nullptr;
    std::atomic<MPI_Datatype> _packed{MPI_DATATYPE_NULL};
    std::optional<MPI_Datatype> _basic;
    std::vector<std::unique_ptr<counted_type>> _counted; // the latest one first
    std::uint64_t _uses     = 0;
    std::uint64_t _messages = 0, _copies = 0, _bytes = 0, _left = 0, _by_cpu = 0;
    std::optional<double> _saved_per_byte;
    bool _is_measured = false;
    std::string _name;
    const char* _constructor = "";
    const char* _why_not     = nullptr; // the last reason to leave a transfer to MPI
};

} // namespace ucxl::mpi
