// What is found out about a datatype: its layouts, the basic type that it consists of, and the datatypes that move its
// bytes in the place of it. Nothing is found out before the first transfer, because most datatypes are only parts of
// others.
//
// Thread safety: the caller's lock, except where it says otherwise.
#pragma once

#include "rule.h"
#include "type_layout.h"

#include <atomic>
#include <optional>

namespace ucxl::mpi
{

// A number of elements of a datatype.
struct counted_layout {
    type_layout_ptr layout; // null: it is none
    traffic moved{};
    bool is_unique      = false;   // no byte twice, so it can be received
    const char* why_not = nullptr; // null: a window is worth it
};

class type_facts
{
public:
    explicit type_facts(MPI_Datatype type) : _type(type) {}
    type_facts(const type_facts&)            = delete;
    type_facts& operator=(const type_facts&) = delete;
    ~type_facts();

    MPI_Datatype type() const { return _type; }

    // Whether learn() was called. Takes no lock.
    bool is_learned() const { return _is_learned.load(std::memory_order_acquire); }
    // Returns false if it was called before. Throws std::bad_alloc.
    bool learn();

    // What follows only after learn().
    const type_layout_ptr& layout() const { return _layout; } // of one element; null: it is none
    void* layout_context() const { return _layout_context; }
    // Where layouts take the place of Open MPI's engine: the engine is as fast with this one.
    bool is_fast_in_engine() const { return _is_fast_in_engine; }
    counted_layout counted(MPI_Count count) const; // throws std::bad_alloc

    // As basic_type_of(). Throws std::bad_alloc.
    MPI_Datatype basic_type();
    // See known_type::packed_type(). Takes no lock.
    MPI_Datatype packed_type() const { return _packed.load(std::memory_order_acquire); }

private:
    void make_layout_datatype();

    const MPI_Datatype _type;
    std::atomic<bool> _is_learned{false};
    ucp_datatype_t _layout_datatype = 0; // 0: windows
    void* _layout_context           = nullptr;
    bool _is_fast_in_engine         = false;
    type_layout_ptr _layout;
    const char* _why_no_layout = nullptr;
    std::atomic<MPI_Datatype> _packed{MPI_DATATYPE_NULL};
    std::optional<MPI_Datatype> _basic;
};

} // namespace ucxl::mpi
