// One side of a collective call, what it sends or what it receives, shown by a window over all of its blocks: of calls
// in which MPI does nothing with them but to send and to receive them. Other processes of this host copy long blocks in
// one pass then, as they do with messages (one_pass.h), also contiguous ones.
//
//     if (const auto window = side_window::of(blocks, 1)) {
//         PMPI_Alltoallw(window->data(), counts, displacements, types, ...);
//     }
//
// The addresses of the window are those of packed bytes, as with a packed_side. The CPU cannot read them, so what a
// process sends to itself must not be among the blocks.
#pragma once

#include "known_type.h"
#include "packed_side.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace ucxl::mpi
{

class side_window
{
public:
    // None if the blocks, each of so many messages, shall not go in one pass. Does not throw.
    static std::optional<side_window> of(const std::vector<element_block>& blocks, std::size_t messages) noexcept;

    std::byte* data() const;
    MPI_Count length() const { return _length; }
    // Of one block: where its packed bytes begin, and the datatype of its packed elements.
    MPI_Count offset(std::size_t index) const { return _blocks[index].offset; }
    MPI_Datatype type(std::size_t index) const { return _blocks[index].packed_type; }

private:
    // A window of one call.
    class whole;

    struct block {
        MPI_Count offset         = 0;
        MPI_Datatype packed_type = MPI_BYTE;
    };

    bool show(const std::vector<element_block>& blocks, std::size_t messages);

    std::vector<block> _blocks;
    MPI_Count _length = 0;
    window_use _only; // where there is one block: programs send the same buffers again and again
    std::shared_ptr<const whole> _all;
};

} // namespace ucxl::mpi
