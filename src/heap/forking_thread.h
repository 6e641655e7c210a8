// What fork() itself writes: the top of the stack, and the C library's record of the thread. A program may have put
// them into blocks of the heap (makecontext(3), pthread_attr_setstack(3)), whose memory parent and child both write
// until the child has its copy. So these pages are private while the process forks, and afterwards the parent's are the
// memory of the heap again.
//
// What another thread writes there in the microseconds in which they are exchanged may be lost: its own variables, too,
// where its stack ends next below this one, of which less than 4 KB are left. One that begins in the last of these to
// wait for the end of such a thread (pthread_join(3)) may not be woken.
//
// Example:
//     if (!thread.make_private(range)) ...                // last of all before the fork
//     thread.share_again();                               // in the parent
//     thread.for_each_other_part(start, length, replace); // in the child
//     thread.stay_private();
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucxl::heap
{

class address_range;

class forking_thread
{
public:
    // Once, when the library is loaded: this takes locks of the dynamic linker.
    static void learn_record_length();

    // Addresses for what a fork maps, where the process may have no more then (setrlimit(2)).
    void keep_room();

    // Does nothing for a thread that has neither in the heap. False if there is no room: then nothing is private, and
    // what parent and child write into the stack is not safe from each other.
    bool make_private(const address_range& range);
    void share_again();
    void stay_private() { release(); }

    // Calls visit(start, length) for what is not private of these bytes.
    template <typename Visitor>
    void for_each_other_part(std::byte* start, std::size_t length, Visitor visit) const
    {
        const std::byte* const end = start + length;
        for (unsigned i = 0; i < _num_parts; ++i) {
            const part& each = _parts[i];
            if (!each.is_private || each.start < start || each.start >= end) {
                continue;
            }
            if (each.start > start) {
                visit(start, static_cast<std::size_t>(each.start - start));
            }
            start = each.start + each.length;
        }
        if (start < end) {
            visit(start, static_cast<std::size_t>(end - start));
        }
    }

private:
    // Whole pages of one piece, by address. Of what is mapped elsewhere a part may be null: not there, or moved.
    struct part {
        std::byte* start;
        std::size_t length;
        std::byte* as_it_was;  // a copy
        std::byte* to_be_here; // the private memory, until it moves to `start`
        std::byte* shared;     // the memory of the heap once more, until it moves back
        bool is_private = false;
    };

    void leave_room();
    void add(std::uintptr_t start, std::uintptr_t end);
    void exchange();
    void exchange_back();
    static bool move(std::byte*& memory, const part& to);
    void release();

    std::byte* _room    = nullptr;
    unsigned _num_parts = 0;
    part _parts[2]{};
    std::uint64_t _signals = 0; // as the thread had blocked them
};

} // namespace ucxl::heap
