#include "transfer.h"

#include "copy_block.h"

namespace ucxl
{

namespace
{

template <direction way>
struct mover {
    using packed_t = packed_pointer<way>;

    const compiled_program& program;
    std::byte* const* bases;

    static void bytes(packed_t packed, std::byte* memory, std::uint64_t length)
    {
        if constexpr (way == direction::gather) {
            copy_any<16>(packed, memory, length);
        } else {
            copy_any<16>(memory, packed, length);
        }
    }

    static void blocks(const block_kernels& kernels, packed_t packed, std::byte* memory, const block_run& run)
    {
        if constexpr (way == direction::gather) {
            kernels.gather(packed, memory, run);
        } else {
            kernels.scatter(memory, packed, run);
        }
    }

    void leaf(const step& what, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
              packed_t packed) const
    {
        switch (what.kind) {
        case step_kind::run:
            run(what, bases[source] + offset, skip, length, packed);
            return;
        case step_kind::table:
            table(what, source, offset, skip, length, packed);
            return;
        case step_kind::record:
            record(what, source, offset, skip, length, packed);
            return;
        case step_kind::loop:
            return; // never a leaf
        }
    }

    static void run(const step& what, std::byte* memory, std::uint64_t skip, std::uint64_t length, packed_t packed)
    {
        const block_run& shape = what.run;
        if (what.is_panel) {
            panel(what, memory, skip, length, packed);
            return;
        }
        if (length == what.packed_length) {
            blocks(*what.kernels, packed, memory, shape);
            return;
        }
        if (shape.outer_count == 1) {
            row(what, memory, skip, length, packed);
            return;
        }
        const std::uint64_t row_length = shape.row_length();
        const std::uint64_t first      = skip / row_length;
        skip -= first * row_length;
        memory += static_cast<std::int64_t>(first) * shape.outer_stride;
        if (skip > 0 || length < row_length) {
            const std::uint64_t head = std::min(length, row_length - skip);
            row(what, memory, skip, head, packed);
            memory += shape.outer_stride;
            packed += head;
            length -= head;
        }
        if (const std::uint64_t rows = length / row_length; rows > 0) {
            block_run part   = shape;
            part.outer_count = rows;
            blocks(*what.kernels, packed, memory, part);
            memory += static_cast<std::int64_t>(rows) * shape.outer_stride;
            packed += rows * row_length;
            length -= rows * row_length;
        }
        if (length > 0) {
            row(what, memory, 0, length, packed);
        }
    }

    static void panel(const step& what, std::byte* memory, std::uint64_t skip, std::uint64_t length, packed_t packed)
    {
        const block_run& shape = what.run;
        const auto block_at    = [&](std::uint64_t row, std::uint64_t i) {
            return memory + static_cast<std::int64_t>(row) * shape.outer_stride +
                   static_cast<std::int64_t>(i) * shape.stride;
        };
        std::uint64_t first = skip / shape.length, row = first / shape.count, i = first - row * shape.count;
        if (skip -= first * shape.length; skip > 0) {
            const std::uint64_t head = std::min(length, shape.length - skip);
            bytes(packed, block_at(row, i) + skip, head);
            packed += head;
            length -= head;
            ++first;
            if (++i == shape.count) {
                i = 0;
                ++row;
            }
        }
        const std::uint64_t blocks = length / shape.length, end = first + blocks;
        const std::uint64_t end_row = end / shape.count, end_i = end - end_row * shape.count;
        // Rows that are cut at either end make up to three panels of whole ones.
        const std::uint64_t cuts[] = {0, std::min(i, end_i), std::max(i, end_i), shape.count};
        for (std::size_t k = 0; k < 3; ++k) {
            const std::uint64_t low = cuts[k], high = cuts[k + 1];
            const std::uint64_t from_row = low >= i ? row : row + 1, to_row = high <= end_i ? end_row + 1 : end_row;
            if (low < high && from_row < to_row) {
                panel_blocks(*what.kernels, packed + (from_row * shape.count + low - first) * shape.length,
                             block_at(from_row, low),
                             {.count      = high - low,
                              .stride     = shape.stride,
                              .rows       = to_row - from_row,
                              .row_stride = shape.outer_stride,
                              .pitch      = static_cast<std::int64_t>(shape.row_length())},
                             shape.length);
            }
        }
        if (length -= blocks * shape.length; length > 0) {
            bytes(packed + blocks * shape.length, block_at(end_row, end_i), length);
        }
    }

    static void panel_blocks(const block_kernels& kernels, packed_t packed, std::byte* memory, const block_panel& part,
                             std::uint64_t length)
    {
        if (part.rows == 1) {
            blocks(kernels, packed, memory, {.length = length, .count = part.count, .stride = part.stride});
        } else if constexpr (way == direction::gather) {
            kernels.gather_panel(packed, memory, part);
        } else {
            kernels.scatter_panel(memory, packed, part);
        }
    }

    // A part of one row.
    static void row(const step& what, std::byte* memory, std::uint64_t skip, std::uint64_t length, packed_t packed)
    {
        const block_run& shape = what.run;
        if (shape.count == 1) {
            bytes(packed, memory + skip, length);
            return;
        }
        const std::uint64_t first = skip / shape.length;
        skip -= first * shape.length;
        memory += static_cast<std::int64_t>(first) * shape.stride;
        if (skip > 0 || length < shape.length) {
            const std::uint64_t head = std::min(length, shape.length - skip);
            bytes(packed, memory + skip, head);
            memory += shape.stride;
            packed += head;
            length -= head;
        }
        const std::uint64_t whole = length / shape.length;
        if (whole > 0) {
            blocks(*what.kernels, packed, memory, {.length = shape.length, .count = whole, .stride = shape.stride});
        }
        const std::uint64_t tail = length - whole * shape.length;
        if (tail > 0) {
            bytes(packed + whole * shape.length, memory + static_cast<std::int64_t>(whole) * shape.stride, tail);
        }
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
        const table_kernels& kernels = program.tables;
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
        for (std::uint64_t left = whole; left > 0;) {
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
        mover<way>{program, bases.data()}.leaf(only, root.source, root.offset, offset, length, packed);
        return;
    }
    program_cursor at(program, offset);
    transfer<way>(at, bases, length, packed);
}

template <direction way>
void transfer(program_cursor& at, base_list bases, std::uint64_t length, packed_pointer<way> packed)
{
    const mover<way> move{at.program(), bases.data()};
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
template void transfer<direction::gather>(program_cursor&, base_list, std::uint64_t, std::byte*);
template void transfer<direction::scatter>(program_cursor&, base_list, std::uint64_t, const std::byte*);

} // namespace ucxl
