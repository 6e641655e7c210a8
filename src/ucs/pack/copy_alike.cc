#include "copy_alike.h"

#include "far_blocks.h"
#include "fetch_rows.h"
#include "stream.h"

namespace ucxl
{

namespace
{

// Iterations of a record whose parts are moved one after the other. Fewer take more calls; more are twice as slow where
// memory is not in the caches.
constexpr std::uint64_t batch_iterations = 8;

// Where the leaf of the cursor lies in both memories.
struct two_sides {
    std::byte* const* to; // base addresses from the source of the leaf on
    std::byte* const* from;
    std::int64_t offset;

    void copy(std::uint32_t source, std::int64_t at, std::uint64_t length, caches policy = caches::filled) const
    {
        const auto copy = policy == caches::passed ? best_kernels().streaming->copy : best_kernels().copy;
        copy(to[source] + (offset + at), from[source] + (offset + at), length);
    }

    void move(const block_kernels& kernels, std::uint32_t source, std::int64_t at, const block_run& row) const
    {
        kernels.move(to[source] + (offset + at), row.stride, from[source] + (offset + at), row.stride, row.count,
                     row.length);
    }

    void move_words(const permute_kernels& kernels, const record_map& map, std::uint64_t first,
                    std::uint64_t count) const
    {
        const std::int64_t at = offset + map.offset + static_cast<std::int64_t>(first) * map.stride;
        kernels.move(to[map.source] + at, from[map.source] + at, map.stride, count, map.words);
    }
};

std::uint64_t copy_run(const run_step& run, const two_sides& sides, std::uint64_t skip, std::uint64_t length,
                       caches policy)
{
    if (run.is_panel || are_far_blocks(run.blocks) || skip > 0 || length < run.packed_length) {
        return 0;
    }
    const block_kernels& kernels = policy == caches::filled
                                       ? *run.kernels
                                       : kernels_past_caches(*run.kernels, sides.to[0] + sides.offset, run.blocks);
    for (std::uint64_t i = 0; i < run.blocks.outer_count; ++i) {
        sides.move(kernels, 0, static_cast<std::int64_t>(i) * run.blocks.outer_stride, run.blocks);
    }
    return run.packed_length;
}

// All blocks of an iteration are one block in memory.
std::uint64_t copy_zip(const compiled_program& program, const zip_step& zip, const two_sides& sides, std::uint64_t skip,
                       std::uint64_t length, caches policy)
{
    if (skip > 0 || length < zip.packed_length) {
        return 0;
    }
    const step_link& first = program.links[zip.first];
    const block_run row{.length = zip.cycle_length, .count = zip.count, .stride = zip.stride};
    if (zip.is_dense()) {
        sides.copy(first.source, first.offset, zip.packed_length, policy);
    } else {
        sides.move(best_kernels().blocks(row), first.source, first.offset, row);
    }
    return zip.packed_length;
}

void copy_iterations(std::span<const record_part> parts, const two_sides& sides, std::uint64_t first,
                     std::uint64_t count)
{
    for (const record_part& part : parts) {
        sides.move(*part.kernels, part.source, part.offset + static_cast<std::int64_t>(first) * part.stride,
                   {.length = part.length, .count = count, .stride = part.stride});
    }
}

std::uint64_t copy_record(const compiled_program& program, const record_step& record, const two_sides& sides,
                          std::uint64_t skip, std::uint64_t length)
{
    const std::span<const record_part> parts = std::span(program.parts).subspan(record.first, record.size);
    std::uint64_t iteration                  = skip / record.cycle_length;
    skip -= iteration * record.cycle_length;
    if (skip > 0 || length < record.cycle_length) {
        const record_part& cut   = *part_at(program, record, skip);
        const std::uint64_t into = skip - cut.packed_offset, size = std::min(length, cut.length - into);
        sides.copy(cut.source,
                   cut.offset + static_cast<std::int64_t>(iteration) * cut.stride + static_cast<std::int64_t>(into),
                   size);
        return size;
    }
    const std::uint64_t whole = length / record.cycle_length;
    if (record.permute != nullptr) {
        sides.move_words(*record.permute, program.maps[record.map], iteration, whole);
        return whole * record.cycle_length;
    }
    for (const std::uint64_t end = iteration + whole; iteration < end;) {
        const std::uint64_t count = std::min(batch_iterations, end - iteration);
        copy_iterations(parts, sides, iteration, count);
        iteration += count;
    }
    return whole * record.cycle_length;
}

void copy_rows(const compiled_program& program, const table_step& table, const two_sides& sides,
               std::span<const table_row> rows, caches policy)
{
    if (table.rows != nullptr) {
        table.rows->move(sides.to[0] + sides.offset, sides.from[0] + sides.offset, rows.data(), rows.size());
        return;
    }
    const bool streams           = policy == caches::passed && has_long_blocks(table);
    const table_kernels& kernels = streams ? best_kernels().streaming->tables : program.tables;
    const bool fetches_targets   = table.rows_ahead_scatter > 0 && !streams;
    const std::size_t batch      = table.rows_ahead_gather > 0 ? table.rows_ahead_gather : rows.size();
    while (!rows.empty()) {
        const auto now  = rows.first(std::min(batch, rows.size()));
        rows            = rows.subspan(now.size());
        const auto next = rows.first(std::min(batch, rows.size()));
        fetch_rows<false>(next, sides.from, sides.offset);
        if (fetches_targets) {
            fetch_rows<true>(next, sides.to, sides.offset);
        }
        if (table.one_source) {
            kernels.move(sides.to[0] + sides.offset, sides.from[0] + sides.offset, now.data(), now.size());
        } else {
            kernels.move_sources(sides.to, sides.from, sides.offset, now.data(), now.size());
        }
    }
}

std::uint64_t copy_table(const compiled_program& program, const table_step& table, const two_sides& sides,
                         std::uint64_t skip, std::uint64_t length, caches policy)
{
    const auto rows          = std::span(program.rows).subspan(table.first, table.size);
    const auto positions     = std::span(program.row_positions).subspan(table.first, table.size);
    const std::size_t first  = skip == 0 ? 0 : row_index_at(program, table, skip);
    const std::uint64_t into = skip - positions[first];
    const std::size_t end =
        skip + length == table.packed_length ? table.size : row_index_at(program, table, skip + length);
    if (into > 0 || end == first) {
        const std::uint64_t size = std::min(length, rows[first].length - into);
        sides.copy(rows[first].source, rows[first].offset + static_cast<std::int64_t>(into), size);
        return size;
    }
    copy_rows(program, table, sides, rows.subspan(first, end - first), policy);
    return (end == table.size ? table.packed_length : positions[end]) - skip;
}

} // namespace

std::uint64_t copy_alike(const program_cursor& place, base_list to_bases, base_list from_bases, std::uint64_t length,
                         caches policy)
{
    const two_sides sides{&to_bases[place.source()], &from_bases[place.source()], place.offset()};
    length = std::min(length, place.left());
    return std::visit(
        overloaded{
            [&](const run_step& run) { return copy_run(run, sides, place.skip(), length, policy); },
            [&](const zip_step& zip) { return copy_zip(place.program(), zip, sides, place.skip(), length, policy); },
            [&](const record_step& record) {
                return copy_record(place.program(), record, sides, place.skip(), length);
            },
            [&](const table_step& table) {
                return copy_table(place.program(), table, sides, place.skip(), length, policy);
            },
            [](const loop_step&) { return std::uint64_t{0}; }, // never a leaf
        },
        place.leaf().form);
}

} // namespace ucxl
