#include "transfer.h"

#include "block_mover.h"
#include "stream.h"

namespace ucxl
{

namespace
{

template <direction way>
struct mover : block_mover<way> {
    using packed_t = packed_pointer<way>;
    using block_mover<way>::bytes;
    using block_mover<way>::run;

    const compiled_program& program;
    std::byte* const* bases;
    caches are = caches::filled;

    void leaf(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
              packed_t packed) const
    {
        switch (what.kind) {
        case step_kind::run:
            run(what, kernels_of(what, bases[source] + offset), bases[source] + offset, skip, length, packed);
            return;
        case step_kind::table:
            table(what, source, offset, skip, length, packed);
            return;
        case step_kind::record:
            record(what, source, offset, skip, length, packed);
            return;
        case step_kind::zip:
            zip(what, source, offset, skip, length, packed);
            return;
        case step_kind::loop:
            return; // never a leaf
        }
    }

    const block_kernels& kernels_of(const step& what, const std::byte* memory) const
    {
        if (are == caches::filled) {
            return *what.kernels;
        }
        // A gather writes packed bytes, and is only asked for this where its blocks are long.
        return way == direction::gather ? best_kernels().streaming->blocks
                                        : kernels_past_caches(*what.kernels, memory, what.run);
    }

    packed_t rows(const step& what, std::uint32_t source, std::int64_t offset, std::size_t first, std::size_t count,
                  packed_t packed) const
    {
        const table_row* from = &program.rows[what.first] + first;
        if (what.rows != nullptr) {
            if constexpr (way == direction::gather) {
                what.rows->gather(packed, bases[source] + offset, from, count);
            } else {
                what.rows->scatter(bases[source] + offset, packed, from, count);
            }
            return packed + count * what.row_length;
        }
        const bool streams           = are == caches::passed && has_long_blocks(what);
        const table_kernels& kernels = streams ? best_kernels().streaming->tables : program.tables;
        if constexpr (way == direction::gather) {
            return what.one_source ? kernels.gather(packed, bases[source] + offset, from, count)
                                   : kernels.gather_sources(packed, bases + source, offset, from, count);
        } else {
            return what.one_source ? kernels.scatter(bases[source] + offset, packed, from, count)
                                   : kernels.scatter_sources(bases + source, offset, packed, from, count);
        }
    }

    void table(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
               packed_t packed) const
    {
        if (length == what.packed_length) {
            rows(what, source, offset, 0, what.size, packed);
            return;
        }
        if (what.rows != nullptr) {
            even_table(what, bases[source] + offset, skip, length, packed);
            return;
        }
        const table_row* all           = &program.rows[what.first];
        const std::uint64_t* positions = &program.row_positions[what.first];
        const std::uint64_t* end       = positions + what.size;
        std::size_t at = static_cast<std::size_t>(std::upper_bound(positions, end, skip) - positions) - 1;
        if (const std::uint64_t into = skip - positions[at]; into > 0) {
            const std::uint64_t head = std::min(length, all[at].length - into);
            bytes(packed, row_address(all[at], source, offset) + into, head);
            packed += head;
            skip += head;
            length -= head;
            ++at;
        }
        // The row that holds the first byte behind the range.
        const std::size_t last =
            static_cast<std::size_t>(std::upper_bound(positions + at, end, skip + length) - positions) - 1;
        const bool cut         = length > 0 && skip + length < what.packed_length;
        const std::size_t stop = cut ? last : length > 0 ? what.size : at;
        packed                 = rows(what, source, offset, at, stop - at, packed);
        if (cut) {
            bytes(packed, row_address(all[last], source, offset), skip + length - positions[last]);
        }
    }

    // Rows of one length need no search.
    void even_table(const step& what, std::byte* memory, std::uint64_t skip, std::uint64_t length,
                    packed_t packed) const
    {
        const std::uint64_t row_length = what.row_length;
        const std::uint64_t first      = skip / row_length;
        const table_row* row           = &program.rows[what.first] + first;
        if (skip -= first * row_length; skip > 0) {
            const std::uint64_t head = std::min(length, row_length - skip);
            bytes(packed, memory + row->offset + static_cast<std::int64_t>(skip), head);
            packed += head;
            length -= head;
            ++row;
        }
        const std::uint64_t count = length / row_length;
        if constexpr (way == direction::gather) {
            what.rows->gather(packed, memory, row, count);
        } else {
            what.rows->scatter(memory, packed, row, count);
        }
        if (length -= count * row_length; length > 0) {
            bytes(packed + count * row_length, memory + row[count].offset, length);
        }
    }

    std::byte* row_address(const table_row& row, std::uint32_t source, std::int64_t offset) const
    {
        return bases[source + row.source] + (offset + row.offset);
    }

    void record(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
                packed_t packed) const
    {
        std::uint64_t iteration = 0;
        if (skip > 0) {
            iteration = skip / what.cycle_length;
            skip -= iteration * what.cycle_length;
        }
        if (skip > 0 || length < what.cycle_length) {
            const std::uint64_t head = std::min(length, what.cycle_length - skip);
            cut_iteration(what, source, offset, iteration, skip, head, packed);
            ++iteration;
            packed += head;
            length -= head;
        }
        const std::uint64_t whole = length / what.cycle_length;
        if (what.permute != nullptr && whole > 0) {
            permuted(what, source, offset, iteration, whole, packed);
            iteration += whole;
            packed += whole * what.cycle_length;
        }
        for (std::uint64_t left = what.permute != nullptr ? 0 : whole; left > 0;) {
            const std::uint64_t count = std::min<std::uint64_t>(left, what.batch);
            iterations(what, source, offset, iteration, count, packed);
            iteration += count;
            left -= count;
            packed += count * what.cycle_length;
        }
        if (const std::uint64_t tail = length - whole * what.cycle_length; tail > 0) {
            cut_iteration(what, source, offset, iteration, 0, tail, packed);
        }
    }

    void permuted(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t iteration,
                  std::uint64_t count, packed_t packed) const
    {
        const record_map& map = program.maps[what.map];
        std::byte* memory =
            bases[source + map.source] + (offset + map.offset + static_cast<std::int64_t>(iteration) * map.stride);
        if constexpr (way == direction::gather) {
            what.permute->gather(packed, memory, map.stride, count, map.words);
        } else {
            what.permute->scatter(memory, packed, map.stride, count, map.words);
        }
    }

    // What is contiguous for the group is this memory, and its columns are the packed bytes.
    void zip(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
             packed_t packed) const
    {
        const step_link* links = &program.links[what.first];
        if (length < what.packed_length) {
            zip_part(what, source, offset, skip, length, packed);
            return;
        }
        std::array<block_column, max_group> columns;
        for (std::uint32_t i = 0; i < what.size; ++i) {
            columns[i] = {const_cast<std::byte*>(packed) + links[i].packed_offset,
                          static_cast<std::int64_t>(program.steps[links[i].child].run.length)};
        }
        std::byte* memory = bases[source + links->source] + (offset + links->offset);
        if constexpr (way == direction::gather) {
            what.group->scatter(columns.data(), memory, what.run.stride, what.count);
        } else {
            what.group->gather(memory, what.run.stride, columns.data(), what.count);
        }
    }

    // Run by run.
    void zip_part(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
                  packed_t packed) const
    {
        const step_link* link = &program.links[what.first];
        while (skip >= link->packed_offset + program.steps[link->child].packed_length) {
            ++link;
        }
        for (skip -= link->packed_offset; length > 0; ++link, skip = 0) {
            const step& child        = program.steps[link->child];
            const std::uint64_t size = std::min(length, child.packed_length - skip);
            run(child, *child.kernels, bases[source + link->source] + (offset + link->offset), skip, size, packed);
            packed += size;
            length -= size;
        }
    }

    std::byte* part_address(const record_part& part, std::uint32_t source, std::int64_t offset,
                            std::uint64_t iteration) const
    {
        return bases[source + part.source] +
               (offset + part.offset + static_cast<std::int64_t>(iteration) * part.stride);
    }

    void iterations(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t iteration,
                    std::uint64_t count, packed_t packed) const
    {
        const record_column* column = &program.columns[what.first_column];
        const record_column* end    = column + what.num_columns;
        for (; column != end; ++column) {
            const record_part* part = &program.parts[what.first + column->first_part];
            std::array<block_column, max_group> columns;
            for (std::uint32_t i = 0; i < column->num_parts; ++i) {
                columns[i] = {part_address(part[i], source, offset, iteration), part[i].stride};
            }
            move_column(*column, columns.data(), packed + part->packed_offset,
                        static_cast<std::int64_t>(what.cycle_length), count, part->length);
        }
    }

    static void move_column(const record_column& column, const block_column* columns, packed_t packed,
                            std::int64_t cycle, std::uint64_t count, std::uint64_t length)
    {
        if constexpr (way == direction::gather) {
            if (column.group != nullptr) {
                column.group->gather(packed, cycle, columns, count);
            } else {
                column.kernels->move(packed, cycle, columns->memory, columns->stride, count, length);
            }
        } else {
            if (column.group != nullptr) {
                column.group->scatter(columns, packed, cycle, count);
            } else {
                column.kernels->move(columns->memory, columns->stride, packed, cycle, count, length);
            }
        }
    }

    // A part of one iteration.
    void cut_iteration(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t iteration,
                       std::uint64_t skip, std::uint64_t length, packed_t packed) const
    {
        const record_part* part = &program.parts[what.first];
        while (skip >= part->packed_offset + part->length) {
            ++part;
        }
        for (skip -= part->packed_offset; length > 0; ++part, skip = 0) {
            const std::uint64_t size = std::min(length, part->length - skip);
            bytes(packed, part_address(*part, source, offset, iteration) + skip, size);
            packed += size;
            length -= size;
        }
    }
};

} // namespace

template <direction way>
void transfer(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
              packed_pointer<way> packed)
{
    const step_link& root = program.root;
    if (const step& only = program.steps[root.child]; only.kind != step_kind::loop) {
        mover<way>{{}, program, bases.data()}.leaf(only, root.source, root.offset, offset, length, packed);
        return;
    }
    program_cursor at(program, offset);
    transfer<way>(at, bases, length, packed);
}

template <direction way>
void transfer(program_cursor& at, base_list bases, std::uint64_t length, packed_pointer<way> packed, caches are)
{
    const mover<way> move{{}, at.program(), bases.data(), are};
    while (length > 0) {
        const std::uint64_t size = std::min(length, at.left());
        move.leaf(at.leaf(), at.source(), at.offset(), at.skip(), size, packed);
        at.advance(size);
        packed += size;
        length -= size;
    }
}

template void transfer<direction::gather>(const compiled_program&, base_list, std::uint64_t, std::uint64_t, std::byte*);
template void transfer<direction::scatter>(const compiled_program&, base_list, std::uint64_t, std::uint64_t,
                                           const std::byte*);
template void transfer<direction::gather>(program_cursor&, base_list, std::uint64_t, std::byte*, caches);
template void transfer<direction::scatter>(program_cursor&, base_list, std::uint64_t, const std::byte*, caches);

} // namespace ucxl
