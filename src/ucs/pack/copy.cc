// Copies from the memory of one plan straight into the memory of another.
#include "copy_alike.h"
#include "far_blocks.h"
#include "stream.h"

#include <array>
#include <cassert>

namespace ucxl
{

namespace
{

// Shorter pieces are cheaper through the buffer: two kernel calls for many blocks, not several steps for each piece.
constexpr std::uint64_t min_direct_length = 1024;
// Finding a row of a table takes a search, which does not pay for shorter rows.
constexpr std::uint64_t min_direct_row = 4096;
constexpr std::size_t buffer_length    = 16384;

// What can be moved from the cursor's place in one call: `blocks` blocks of `length` bytes.
struct piece {
    std::byte* address;
    std::uint64_t length;
    std::uint64_t blocks;
    std::int64_t stride;
    const block_kernels* kernels; // of blocks > 1
};

piece piece_of_run(const run_step& leaf, std::uint64_t skip, std::byte* memory)
{
    const block_run& run = leaf.blocks;
    if (skip == 0) {
        return {memory, run.length, run.count, run.stride, leaf.kernels};
    }
    const std::uint64_t row = run.outer_count == 1 ? 0 : skip / run.row_length();
    skip -= row * run.row_length();
    const std::uint64_t block = skip / run.length;
    skip -= block * run.length;
    memory += static_cast<std::int64_t>(row) * run.outer_stride + static_cast<std::int64_t>(block) * run.stride +
              static_cast<std::int64_t>(skip);
    if (skip > 0) {
        return {memory, run.length - skip, 1, 0, nullptr};
    }
    return {memory, run.length, run.count - block, run.stride, leaf.kernels};
}

piece piece_of_zip(const program_cursor& cursor, const zip_step& zip, base_list bases)
{
    const step_link* link = run_at(cursor.program(), zip, cursor.skip());
    return piece_of_run(*as<run_step>(cursor.program().steps[link->child]), cursor.skip() - link->packed_offset,
                        bases[cursor.source() + link->source] + (cursor.offset() + link->offset));
}

piece piece_of_table(const program_cursor& cursor, const table_step& table, base_list bases)
{
    const compiled_program& program = cursor.program();
    const std::size_t index         = table.first + row_index_at(program, table, cursor.skip());
    const table_row& row            = program.rows[index];
    const std::uint64_t into        = cursor.skip() - program.row_positions[index];
    return {bases[cursor.source() + row.source] + (cursor.offset() + row.offset + static_cast<std::int64_t>(into)),
            row.length - into, 1, 0, nullptr};
}

piece piece_of_record(const program_cursor& cursor, const record_step& record, base_list bases)
{
    const std::uint64_t iteration = cursor.skip() / record.cycle_length;
    const std::uint64_t skip      = cursor.skip() - iteration * record.cycle_length;
    const record_part* part       = part_at(cursor.program(), record, skip);
    const std::uint64_t into      = skip - part->packed_offset;
    return {bases[cursor.source() + part->source] +
                (cursor.offset() + part->offset + static_cast<std::int64_t>(iteration) * part->stride +
                 static_cast<std::int64_t>(into)),
            part->length - into, 1, 0, nullptr};
}

piece piece_at(const program_cursor& cursor, base_list bases)
{
    return std::visit(overloaded{
                          [&](const run_step& run) {
                              return piece_of_run(run, cursor.skip(), bases[cursor.source()] + cursor.offset());
                          },
                          [&](const table_step& table) { return piece_of_table(cursor, table, bases); },
                          [&](const record_step& record) { return piece_of_record(cursor, record, bases); },
                          [&](const zip_step& zip) { return piece_of_zip(cursor, zip, bases); },
                          [](const loop_step&) { return piece{}; }, // never a leaf
                      },
                      cursor.leaf().form);
}

void advance(program_cursor& cursor, std::uint64_t length)
{
    while (length > 0) {
        const std::uint64_t size = std::min(length, cursor.left());
        cursor.advance(size);
        length -= size;
    }
}

std::uint64_t min_direct(const program_cursor& cursor)
{
    return as<table_step>(cursor.leaf()) != nullptr ? min_direct_row : min_direct_length;
}

// Both cursors are at the start of a panel, and the panels differ in strides only.
bool meet_at_panels(const program_cursor& to, const program_cursor& from)
{
    if (!is_panel(to.leaf()) || !is_panel(from.leaf()) || to.skip() != 0 || from.skip() != 0) {
        return false;
    }
    const block_run &target = as<run_step>(to.leaf())->blocks, &origin = as<run_step>(from.leaf())->blocks;
    return target.length == origin.length && target.count == origin.count && target.outer_count == origin.outer_count;
}

// Copies in memory order, in which the blocks are neighbours. Packed order does not matter here.
void copy_panel(const run_step& target, std::byte* to, const run_step& origin, const std::byte* from)
{
    const block_run &into = target.blocks, &out_of = origin.blocks;
    const std::uint64_t length = into.length, rows = into.outer_count;
    if (const auto adjacent = static_cast<std::int64_t>(length);
        into.outer_stride == adjacent && out_of.outer_stride == adjacent) {
        const block_run row{.length = length * rows, .count = into.count, .stride = into.stride};
        best_kernels().blocks(row).move(to, into.stride, from, out_of.stride, row.count, row.length);
        return;
    }
    for (std::uint64_t i = 0; i < into.count; ++i) {
        target.kernels->move(to, into.outer_stride, from, out_of.outer_stride, rows, length);
        to += into.stride;
        from += out_of.stride;
    }
}

// Moves at most `length` bytes and returns how many it moved.
std::uint64_t copy_some(program_cursor& to, base_list to_bases, program_cursor& from, base_list from_bases,
                        std::uint64_t length, caches policy)
{
    if (const std::uint64_t size = to.left(); size <= length && meet_at_panels(to, from)) {
        copy_panel(*as<run_step>(to.leaf()), to_bases[to.source()] + to.offset(), *as<run_step>(from.leaf()),
                   from_bases[from.source()] + from.offset());
        advance(to, size);
        advance(from, size);
        return size;
    }
    const piece target = piece_at(to, to_bases);
    const piece origin = piece_at(from, from_bases);
    if (target.length == origin.length) {
        const std::uint64_t blocks = std::min({target.blocks, origin.blocks, length / target.length});
        const block_run written{.length = target.length, .count = blocks, .stride = target.stride};
        const block_run read{.length = origin.length, .count = blocks, .stride = origin.stride};
        if (const std::uint64_t size = blocks * target.length;
            blocks > 1 && size >= min_direct_length && !are_far_blocks(read)) {
            const block_kernels& kernels = policy == caches::filled
                                               ? *target.kernels
                                               : kernels_past_caches(*target.kernels, target.address, written);
            kernels.move(target.address, target.stride, origin.address, origin.stride, blocks, target.length);
            advance(to, size);
            advance(from, size);
            return size;
        }
    }
    if (const std::uint64_t size = std::min(target.length, length);
        size >= min_direct(to) && target.length >= origin.length) {
        move_range<direction::gather>(from, from_bases, size, target.address);
        advance(to, size);
        return size;
    }
    if (const std::uint64_t size = std::min(origin.length, length); size >= min_direct(from)) {
        move_range<direction::scatter>(to, to_bases, size, origin.address, policy);
        advance(from, size);
        return size;
    }
    std::array<std::byte, buffer_length> buffer;
    const std::uint64_t size = std::min<std::uint64_t>(length, buffer.size());
    move_range<direction::gather>(from, from_bases, size, buffer.data());
    move_range<direction::scatter>(to, to_bases, size, buffer.data(), policy);
    return size;
}

} // namespace

void pack_plan::copy(const pack_plan& to, base_list to_bases, std::uint64_t to_offset, const pack_plan& from,
                     base_list from_bases, std::uint64_t from_offset, std::uint64_t length, std::uint64_t whole)
{
    assert(to_offset <= to.packed_length() && length <= to.packed_length() - to_offset);
    assert(from_offset <= from.packed_length() && length <= from.packed_length() - from_offset);
    assert(to_bases.size() >= to._layout->num_sources() && from_bases.size() >= from._layout->num_sources());
    if (length == 0) {
        return;
    }
    program_cursor target(*to._program, to_offset);
    program_cursor origin(*from._program, from_offset);
    const std::uint64_t large = std::max(length, whole);
    const bool is_large       = large >= to._program->min_streamed_copy && passes_caches(length, large);
    const caches policy       = is_large ? caches::passed : caches::filled;
    const bool alike          = &to == &from && to_offset == from_offset;
    while (length > 0) {
        if (alike) {
            if (const std::uint64_t moved = copy_alike(target, to_bases, from_bases, length, policy); moved > 0) {
                target.advance(moved);
                origin.advance(moved);
                length -= moved;
                continue;
            }
        }
        length -= copy_some(target, to_bases, origin, from_bases, length, policy);
    }
    if (is_large) {
        finish_streaming();
    }
}

} // namespace ucxl
