#include "packed_range.h"

#include "block_mover.h"
#include "fetch_rows.h"
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
    caches policy = caches::filled;

    void leaf(const step& step, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
              packed_t packed) const
    {
        // Not std::visit(), whose calls are not inlined: fragments of runs would take 12 % longer.
        if (const auto* const blocks = as<run_step>(step)) {
            run(*blocks, kernels_of(*blocks, bases[source] + offset), bases[source] + offset, skip, length, packed);
        } else if (const auto* const rows = as<table_step>(step)) {
            table(*rows, source, offset, skip, length, packed);
        } else if (const auto* const parts = as<record_step>(step)) {
            record(*parts, source, offset, skip, length, packed);
        } else if (const auto* const runs = as<zip_step>(step)) {
            zip(*runs, source, offset, skip, length, packed);
        }
    }

    const block_kernels& kernels_of(const run_step& step, const std::byte* memory) const
    {
        if (policy == caches::filled) {
            return *step.kernels;
        }
        // A gather writes packed bytes; it gets here only if its blocks are long.
        return way == direction::gather ? best_kernels().streaming->blocks
                                        : kernels_past_caches(*step.kernels, memory, step.blocks);
    }

    packed_t rows(const table_step& step, std::uint32_t source, std::int64_t offset, std::size_t first,
                  std::size_t count, packed_t packed) const
    {
        const table_row* from = &program.rows[step.first] + first;
        if (step.rows != nullptr) {
            if constexpr (way == direction::gather) {
                step.rows->gather(packed, bases[source] + offset, from, count);
            } else {
                step.rows->scatter(bases[source] + offset, packed, from, count);
            }
            return packed + count * step.row_length;
        }
        const bool streams           = policy == caches::passed && has_long_blocks(step);
        const table_kernels& kernels = streams ? best_kernels().streaming->tables : program.tables;
        const std::size_t ahead      = way == direction::gather ? step.rows_ahead_gather
                                       : streams                ? 0
                                                                : step.rows_ahead_scatter;
        if (ahead == 0) {
            return some_rows(step, kernels, source, offset, from, count, packed);
        }
        const table_row* const end = &program.rows[step.first] + step.size;
        for (std::size_t now; count > 0; count -= now) {
            now                         = std::min(count, ahead);
            const table_row* const next = from + now;
            fetch_rows<way == direction::scatter>(
                std::span(next, std::min(ahead, static_cast<std::size_t>(end - next))), bases + source, offset);
            packed = some_rows(step, kernels, source, offset, from, now, packed);
            from   = next;
        }
        return packed;
    }

    packed_t some_rows(const table_step& step, const table_kernels& kernels, std::uint32_t source, std::int64_t offset,
                       const table_row* from, std::size_t count, packed_t packed) const
    {
        if constexpr (way == direction::gather) {
            return step.one_source ? kernels.gather(packed, bases[source] + offset, from, count)
                                   : kernels.gather_sources(packed, bases + source, offset, from, count);
        } else {
            return step.one_source ? kernels.scatter(bases[source] + offset, packed, from, count)
                                   : kernels.scatter_sources(bases + source, offset, packed, from, count);
        }
    }

    void table(const table_step& step, std::uint32_t source, std::int64_t offset, std::uint64_t skip,
               std::uint64_t length, packed_t packed) const
    {
        if (length == step.packed_length) {
            rows(step, source, offset, 0, step.size, packed);
            return;
        }
        if (step.rows != nullptr) {
            even_table(step, bases[source] + offset, skip, length, packed);
            return;
        }
        const table_row* all           = &program.rows[step.first];
        const std::uint64_t* positions = &program.row_positions[step.first];
        std::size_t at                 = row_index_at(program, step, skip);
        if (const std::uint64_t into = skip - positions[at]; into > 0) {
            const std::uint64_t head = std::min(length, all[at].length - into);
            bytes(packed, row_address(all[at], source, offset) + into, head);
            packed += head;
            skip += head;
            length -= head;
            ++at;
        }
        if (length == 0) {
            return;
        }
        const bool cut         = skip + length < step.packed_length;
        const std::size_t stop = cut ? row_index_at(program, step, skip + length) : step.size;
        packed                 = rows(step, source, offset, at, stop - at, packed);
        if (cut) {
            bytes(packed, row_address(all[stop], source, offset), skip + length - positions[stop]);
        }
    }

    // Rows of one length need no search.
    void even_table(const table_step& step, std::byte* memory, std::uint64_t skip, std::uint64_t length,
                    packed_t packed) const
    {
        const std::uint64_t row_length = step.row_length;
        const std::uint64_t first      = skip / row_length;
        const table_row* row           = &program.rows[step.first] + first;
        if (skip -= first * row_length; skip > 0) {
            const std::uint64_t head = std::min(length, row_length - skip);
            bytes(packed, memory + row->offset + static_cast<std::int64_t>(skip), head);
            packed += head;
            length -= head;
            ++row;
        }
        const std::uint64_t count = length / row_length;
        if constexpr (way == direction::gather) {
            step.rows->gather(packed, memory, row, count);
        } else {
            step.rows->scatter(memory, packed, row, count);
        }
        if (length -= count * row_length; length > 0) {
            bytes(packed + count * row_length, memory + row[count].offset, length);
        }
    }

    std::byte* row_address(const table_row& row, std::uint32_t source, std::int64_t offset) const
    {
        return bases[source + row.source] + (offset + row.offset);
    }

    void record(const record_step& step, std::uint32_t source, std::int64_t offset, std::uint64_t skip,
                std::uint64_t length, packed_t packed) const
    {
        std::uint64_t iteration = 0;
        if (skip > 0) {
            iteration = skip / step.cycle_length;
            skip -= iteration * step.cycle_length;
        }
        if (skip > 0 || length < step.cycle_length) {
            const std::uint64_t head = std::min(length, step.cycle_length - skip);
            cut_iteration(step, source, offset, iteration, skip, head, packed);
            ++iteration;
            packed += head;
            length -= head;
        }
        const std::uint64_t whole = length / step.cycle_length;
        if (step.permute != nullptr && whole > 0) {
            permuted(step, source, offset, iteration, whole, packed);
            iteration += whole;
            packed += whole * step.cycle_length;
        }
        for (std::uint64_t left = step.permute != nullptr ? 0 : whole; left > 0;) {
            const std::uint64_t count = std::min<std::uint64_t>(left, step.batch);
            iterations(step, source, offset, iteration, count, packed);
            iteration += count;
            left -= count;
            packed += count * step.cycle_length;
        }
        if (const std::uint64_t tail = length - whole * step.cycle_length; tail > 0) {
            cut_iteration(step, source, offset, iteration, 0, tail, packed);
        }
    }

    void permuted(const record_step& step, std::uint32_t source, std::int64_t offset, std::uint64_t iteration,
                  std::uint64_t count, packed_t packed) const
    {
        const record_map& map = program.maps[step.map];
        std::byte* memory =
            bases[source + map.source] + (offset + map.offset + static_cast<std::int64_t>(iteration) * map.stride);
        if constexpr (way == direction::gather) {
            step.permute->gather(packed, memory, map.stride, count, map.words);
        } else {
            step.permute->scatter(memory, packed, map.stride, count, map.words);
        }
    }

    // For the group kernel this memory is the contiguous side, and the packed bytes are its columns.
    void zip(const zip_step& step, std::uint32_t source, std::int64_t offset, std::uint64_t skip, std::uint64_t length,
             packed_t packed) const
    {
        const step_link* links = &program.links[step.first];
        if (length < step.packed_length) {
            zip_part(step, source, offset, skip, length, packed);
            return;
        }
        std::array<block_column, max_group> columns;
        for (std::uint32_t i = 0; i < step.size; ++i) {
            columns[i] = {const_cast<std::byte*>(packed) + links[i].packed_offset,
                          static_cast<std::int64_t>(run_of(links[i]).blocks.length)};
        }
        std::byte* memory = bases[source + links->source] + (offset + links->offset);
        if constexpr (way == direction::gather) {
            step.group->scatter(columns.data(), memory, step.stride, step.count);
        } else {
            step.group->gather(memory, step.stride, columns.data(), step.count);
        }
    }

    const run_step& run_of(const step_link& link) const { return *as<run_step>(program.steps[link.child]); }

    // Moves run by run.
    void zip_part(const zip_step& current, std::uint32_t source, std::int64_t offset, std::uint64_t skip,
                  std::uint64_t length, packed_t packed) const
    {
        const step_link* link = run_at(program, current, skip);
        for (skip -= link->packed_offset; length > 0; ++link, skip = 0) {
            const run_step& child    = run_of(*link);
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

    void iterations(const record_step& step, std::uint32_t source, std::int64_t offset, std::uint64_t iteration,
                    std::uint64_t count, packed_t packed) const
    {
        const record_column* column = &program.columns[step.first_column];
        const record_column* end    = column + step.num_columns;
        for (; column != end; ++column) {
            const record_part* part = &program.parts[step.first + column->first_part];
            std::array<block_column, max_group> columns;
            for (std::uint32_t i = 0; i < column->num_parts; ++i) {
                columns[i] = {part_address(part[i], source, offset, iteration), part[i].stride};
            }
            move_column(column->group, *part, columns.data(), packed + part->packed_offset,
                        static_cast<std::int64_t>(step.cycle_length), count);
        }
    }

    // `group` is null for one part alone.
    static void move_column(const group_kernels* group, const record_part& part, const block_column* columns,
                            packed_t packed, std::int64_t cycle, std::uint64_t count)
    {
        if constexpr (way == direction::gather) {
            if (group != nullptr) {
                group->gather(packed, cycle, columns, count);
            } else {
                part.kernels->move(packed, cycle, columns->memory, columns->stride, count, part.length);
            }
        } else {
            if (group != nullptr) {
                group->scatter(columns, packed, cycle, count);
            } else {
                part.kernels->move(columns->memory, columns->stride, packed, cycle, count, part.length);
            }
        }
    }

    // Moves a part of one iteration.
    void cut_iteration(const record_step& step, std::uint32_t source, std::int64_t offset, std::uint64_t iteration,
                       std::uint64_t skip, std::uint64_t length, packed_t packed) const
    {
        const record_part* part = part_at(program, step, skip);
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
void move_range(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                packed_pointer<way> packed)
{
    const step_link& root = program.root;
    if (const step& only = program.steps[root.child]; as<loop_step>(only) == nullptr) {
        mover<way>{{}, program, bases.data()}.leaf(only, root.source, root.offset, offset, length, packed);
        return;
    }
    program_cursor at(program, offset);
    move_range<way>(at, bases, length, packed);
}

template <direction way>
void move_range(program_cursor& cursor, base_list bases, std::uint64_t length, packed_pointer<way> packed,
                caches policy)
{
    const mover<way> move{{}, cursor.program(), bases.data(), policy};
    while (length > 0) {
        const std::uint64_t size = std::min(length, cursor.left());
        move.leaf(cursor.leaf(), cursor.source(), cursor.offset(), cursor.skip(), size, packed);
        cursor.advance(size);
        packed += size;
        length -= size;
    }
}

template void move_range<direction::gather>(const compiled_program&, base_list, std::uint64_t, std::uint64_t,
                                            std::byte*);
template void move_range<direction::scatter>(const compiled_program&, base_list, std::uint64_t, std::uint64_t,
                                             const std::byte*);
template void move_range<direction::gather>(program_cursor&, base_list, std::uint64_t, std::byte*, caches);
template void move_range<direction::scatter>(program_cursor&, base_list, std::uint64_t, const std::byte*, caches);

} // namespace ucxl
