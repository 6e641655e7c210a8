// Packed bytes that move between memory and a buffer together, because they are in the same lines of the cache.
//
// The columns of a panel follow each other in packed order, and each column touches every line of the panel. If a
// transport asks for a column at a time, each line is fetched as often as it has columns. A tile is some columns at a
// time: as many as there are in a line, or as stay in the second-level cache together with their lines.
//
//     loop 16 times, stride 8          packed: | column 0 | column 1 | column 2 | column 3 | column 4 | ...
//       loop 1024 times, stride 8192           <------------ a tile: 32 KB ------------>
//         block of 8 bytes
//
// Example, for an operation whose memory nobody else touches while it runs. So reading ahead of what is sent, and
// writing after what was received, is not seen:
//
//     tile together;
//     together.start(plan->tile_length());
//     if (together.is_used()) {
//         together.read(memory, 0, 8192, piece);  as plan->gather(bases, 0, 8192, piece)
//         together.write(memory, 0, 8192, piece); as plan->scatter(bases, 0, 8192, piece), if flush() comes last
//     }
#pragma once

#include "pack_plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ucxl
{

inline constexpr std::uint64_t max_tile_length = 32 * 1024;

// Packed bytes; a tile begins at each multiple. 0: no bytes need to move together. Looks at each node once.
std::uint64_t tile_length(const layout& layout);

// Of one operation after the other. Each of them reads or writes. Not thread safe.
class tile
{
public:
    // The memory of an operation.
    struct side {
        const pack_plan& plan;
        base_list bases;
        std::uint64_t length; // packed bytes
    };

    // Of these many bytes, at most max_tile_length.
    void start(std::uint64_t length);
    // Asked before the first bytes move, and not before: the buffer is made then, because an operation that is
    // cancelled is never given back. False without memory, or with 0: then no function below may be called.
    bool is_used();
    void read(const side& memory, std::uint64_t offset, std::uint64_t length, std::byte* to);
    void write(const side& memory, std::uint64_t offset, std::uint64_t length, const std::byte* from);
    // Writes what is still here, if anything. May be called in any case.
    void flush(const side& memory);

private:
    struct alignas(64) buffer { // the kernels write whole lines
        std::byte bytes[max_tile_length];
    };

    // How many bytes there are from the offset to the end of its tile.
    std::uint64_t rest(const side& memory, std::uint64_t offset) const;
    // Copies a part of one tile.
    void read_part(const side& memory, std::uint64_t offset, std::uint64_t length, std::byte* to);
    void write_part(const side& memory, std::uint64_t offset, std::uint64_t length, const std::byte* from);

    std::unique_ptr<buffer> _buffer; // stays for the next operation
    std::uint64_t _length = 0;
    std::uint64_t _begin = 0, _end = 0; // packed bytes that are here
};

} // namespace ucxl
