// One side of a call, what it sends or what it receives, as packed bytes: the way of those calls in which MPI itself
// may read or write the buffer with the CPU, which a window does not allow.
//
//     auto side = packed_side::of(blocks);
//     if (side) {
//         side->pack();
//         PMPI_Alltoallw(side->data(), counts, displacements, types, ...);
//     }
//
// Each element becomes an element of as many contiguous bytes. So counts stay, and MPI chooses the algorithm that it
// would have chosen, in agreement with processes whose datatypes are left to it.
#pragma once

#include "known_type.h"
#include "staging.h"

#include <optional>
#include <vector>

namespace ucxl::mpi
{

// What MPI does with elements of the caller's buffer, and no call of this library may do more: others may use the
// memory, or there is none.
enum class usage : unsigned char { none = 0, reads = 1, updates = 2, both = 3 };

inline bool has(usage all, usage one)
{
    return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

// Elements of the caller's buffer.
struct element_block {
    std::byte* address;
    MPI_Count count;
    MPI_Datatype type;
    usage use;

    bool is_used() const { return use != usage::none && count != 0; }
};

class packed_side
{
public:
    // None if MPI shall work on the caller's buffer. Does not throw.
    static std::optional<packed_side> of(const std::vector<element_block>& blocks) noexcept;
    // The same for one block.
    static std::optional<packed_side> of(const void* address, MPI_Count count, MPI_Datatype type,
                                         direction way) noexcept;

    // The same without memory for the packed bytes: for pack_into() and unpack_from().
    static std::optional<packed_side> without_memory(const void* address, MPI_Count count, MPI_Datatype type,
                                                     direction way) noexcept;

    // Two blocks of as many bytes: for copy(). Those that are worth it only, or also short and contiguous ones.
    enum class pairs : unsigned char { worth_it, all };
    static std::optional<packed_side> pair(const element_block& from, const element_block& into, pairs taken) noexcept;

    std::byte* data() const { return _memory.get(); }
    MPI_Count length() const { return _length; }
    // Of one block: where its packed bytes begin, and the datatype of its packed elements.
    MPI_Count offset(std::size_t index) const { return _blocks[index].offset; }
    MPI_Datatype type(std::size_t index) const { return _blocks[index].packed_type; }

    // Of the blocks that MPI reads, and of those that it updates.
    void pack() const;
    void unpack() const;
    // Of those blocks of which all bytes can be read.
    void pack_if_readable() const;
    // Of those that MPI only updates: unpacking them changes nothing where nothing arrives.
    void pack_updated() const;
    // The same of elements of one block.
    void pack_some(std::size_t index, MPI_Count first, MPI_Count count) const;
    void unpack_some(std::size_t index, MPI_Count first, MPI_Count count) const;
    // Copies into or out of memory of the caller, without memory of its own.
    void pack_into(void* packed) const;
    void unpack_from(const void* packed) const;
    // The bytes of a block lie in [first, end).
    struct range {
        const std::byte *first, *end;
    };
    range range_of(std::size_t index) const;
    // What a report says of the blocks.
    void note_copies() const;
    // The first block of a pair into the second one. False without memory for it; some bytes may have been copied then.
    bool copy() const;

private:
    struct block {
        std::byte* address;
        MPI_Count count;
        MPI_Count size;         // of an element
        MPI_Count offset;       // in the packed bytes
        type_layout_ptr layout; // null: contiguous
        known_type* known;
        MPI_Datatype packed_type;
        usage use;

        std::size_t length() const { return static_cast<std::size_t>(count * size); }
        bool is_readable() const;
    };

    static std::optional<packed_side> plan(const element_block* blocks, std::size_t number);
    static std::optional<packed_side> describe_all(const element_block* blocks, std::size_t number);
    // Null if it is worth it.
    const char* why_not_packed() const;
    static bool describe(const element_block& elements, block& made);
    // False without memory for the plan.
    static bool gather(const block& elements, std::size_t offset, std::size_t length, std::byte* packed);
    static bool scatter(const block& elements, std::size_t offset, std::size_t length, const std::byte* packed);

    std::vector<block> _blocks;
    MPI_Count _length = 0;
    staging::buffer _memory;
};

} // namespace ucxl::mpi
