// The compiled form of a layout: a graph of steps in flat arrays. Leaves move bytes with kernels; loops lead to other
// steps.
//
//     run     blocks of one size in one or two loops, one kernel call
//     table   blocks that have nothing in common, one call for all
//     record  a few blocks repeated: for some iterations at a time, one kernel call per column of blocks; or all of
//             them by one permutation
//     zip     runs in sequence whose blocks are neighbours in memory: one pass over the memory moves all of them
//     loop    anything else
//
// Invariant: a step is relative to its use, as layout nodes are, so equal parts exist once. The links of a loop are
// sorted by packed_offset. At most limits::max_depth loops lead to a leaf.
#pragma once

#include "kernels.h"
#include "pack_plan.h"
#include "streaming_limit.h"

#include "ucs/layout/limits.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace ucxl
{

// Of tables whose rows are fetched ahead: the mean, and how much is fetched of a row.
inline constexpr std::uint64_t max_fetched_row = 4096;

struct run_step {
    std::uint64_t packed_length;
    const block_kernels* kernels;
    bool is_panel;
    block_run blocks;
};

struct table_step {
    std::uint64_t packed_length = 0;
    std::uint32_t first         = 0; // index into rows
    std::uint32_t size          = 0;
    std::uint32_t row_length    = 0;    // the length of every row, with kernels of its own; then one_source
    bool one_source             = true; // every row has source 0
    // How many rows the caches get ahead while others are moved, 0 for none.
    std::uint8_t rows_ahead_gather = 0, rows_ahead_scatter = 0;
    const row_kernels* rows = nullptr;

    // Whether its blocks have this length on average.
    bool has_blocks_of(std::uint64_t length) const { return packed_length >= size * length; }
};

struct record_step {
    std::uint64_t packed_length;
    std::uint64_t count;        // iterations
    std::uint64_t cycle_length; // packed bytes of an iteration
    std::uint32_t first;        // index into parts
    std::uint32_t size;
    std::uint32_t first_column;
    std::uint32_t num_columns;
    std::uint32_t batch;            // iterations of one column before the next column
    std::uint32_t map;              // if all blocks are moved by one permutation
    const permute_kernels* permute; // null if it has no map
};

struct zip_step {
    std::uint64_t packed_length;
    std::uint64_t count;        // iterations
    std::uint64_t cycle_length; // packed bytes of an iteration
    std::uint32_t first;        // index into links
    std::uint32_t size;
    std::int64_t stride;
    const group_kernels* group; // with memory and packed bytes exchanged

    // Its iterations follow each other in memory without a gap.
    bool is_dense() const { return stride == static_cast<std::int64_t>(cycle_length); }
};

struct loop_step {
    std::uint64_t packed_length;
    std::uint64_t count;        // iterations
    std::uint64_t cycle_length; // packed bytes of an iteration
    std::uint32_t first;        // index into links
    std::uint32_t size;
};

// For std::visit().
template <typename... Functions>
struct overloaded : Functions... {
    using Functions::operator()...;
};

// All but loops are leaves.
using step_form = std::variant<run_step, table_step, record_step, zip_step, loop_step>;

struct step {
    std::uint64_t packed_length; // that of the form
    step_form form;
};

template <typename Form>
const Form* as(const step& step)
{
    return std::get_if<Form>(&step.form);
}

inline bool is_panel(const step& step)
{
    const auto* const run = as<run_step>(step);
    return run != nullptr && run->is_panel;
}

// A step inside a loop, at offset + i * stride in iteration i.
struct step_link {
    std::uint32_t child;
    std::uint32_t source;
    std::int64_t offset;
    std::int64_t stride;
    std::uint64_t packed_offset; // in the iteration
};

// One block of each iteration of a record.
struct record_part {
    std::int64_t offset;
    std::int64_t stride;
    std::uint64_t length;
    std::uint64_t packed_offset; // in the iteration
    std::uint32_t source;
    const block_kernels* kernels; // to move it alone
};

// All blocks of a record, counted from its lowest byte.
struct record_map {
    word_map words;
    std::int64_t offset;
    std::int64_t stride;
    std::uint32_t source;
};

// Neighbouring parts that move together.
struct record_column {
    const group_kernels* group; // for several parts
    std::uint32_t first_part;   // in the record
    std::uint32_t num_parts;
};

struct compiled_program {
    std::vector<step> steps;
    std::vector<step_link> links;
    std::vector<table_row> rows;
    std::vector<std::uint64_t> row_positions; // packed offset of each row in its table
    std::vector<record_part> parts;
    std::vector<record_column> columns;
    std::vector<record_map> maps;
    table_kernels tables{};
    step_link root{}; // its packed_offset and stride are 0
};

// The part that holds a packed byte of an iteration of the record.
inline const record_part* part_at(const compiled_program& program, const record_step& record, std::uint64_t position)
{
    const record_part* part = &program.parts[record.first];
    while (position >= part->packed_offset + part->length) {
        ++part;
    }
    return part;
}

// The run that holds a packed byte of the zip.
inline const step_link* run_at(const compiled_program& program, const zip_step& zip, std::uint64_t position)
{
    const step_link* link = &program.links[zip.first];
    while (position >= link->packed_offset + program.steps[link->child].packed_length) {
        ++link;
    }
    return link;
}

// The row that holds a packed byte of the table, counted from the first row of the table.
inline std::size_t row_index_at(const compiled_program& program, const table_step& table, std::uint64_t position)
{
    const std::uint64_t* positions = &program.row_positions[table.first];
    return static_cast<std::size_t>(std::upper_bound(positions, positions + table.size, position) - positions) - 1;
}

// The empty layout has no steps. Throws std::bad_alloc.
compiled_program compile_program(const layout& layout);
// One line per step, outermost first; cut when there are many lines.
std::string describe_program(const compiled_program& program);

struct pack_plan::program : compiled_program {
    // From how many bytes on gathers and copies may write past the caches (stream.h): whether they do depends on
    // streaming_limit(). All scatters that are not small may.
    std::uint64_t min_streamed_gather = no_streaming, min_streamed_copy = no_streaming;
    std::uint64_t min_streamed_scatter = no_streaming;
};

} // namespace ucxl
