#include "record_parts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace ucxl
{

namespace
{

// At most this many blocks of one iteration make a record. Beyond it, walking is cheaper than one kernel call per block
// and batch.
constexpr std::uint64_t max_parts = 32;
// Records with fewer iterations do not pay for their kernel calls.
constexpr std::uint64_t min_record_count = 8;
// Rows of at most this many small blocks become a record (one kernel call per column), not a run of two loops.
constexpr std::uint64_t max_short_row   = 8;
constexpr std::uint64_t max_short_block = 64;
// At most this many blocks are listed in a table if no better form fits.
constexpr std::uint64_t max_listed_loop = 64;
// At most this many blocks of one list entry go into the table around it.
constexpr std::uint64_t max_listed_entry = 4;
// Records and tables of a plan may list so many blocks beyond max_listed_entry for each entry of their nodes. Without
// a limit, many loops over the same few blocks, of 17 bytes each in the wire form, would become 2 KB of parts each.
constexpr std::uint64_t max_listed_beyond = 32768;
// From this many entries on, single blocks of one length and source get a table of their own.
constexpr std::uint32_t min_even_rows = 24;
// Of tables whose next rows are fetched ahead, by their mean. Measured: it is of no use where the second-level cache
// may hold all of them, for rows of which hardware itself fetches the most, and for rows that follow each other:
// hardware fetches on.
constexpr std::uint64_t min_fetched_table = 256 * 1024;
constexpr std::uint64_t min_jump          = 4096;
constexpr std::uint64_t min_fetched_row = 112, max_scattered_row = 511;
constexpr std::uint64_t length_ahead = 8192;

class program_compiler
{
public:
    explicit program_compiler(const layout& layout) : _layout(layout), _placed(layout.nodes().size()) {}

    compiled_program compile()
    {
        _program.tables = _kernels.tables;
        if (!_layout.is_empty()) {
            const layout_entry& root = _layout.root();
            _program.root            = link_to(place(root.child), root.source, root.offset, 0, 0);
        }
        return std::move(_program);
    }

private:
    static constexpr std::uint32_t no_child = std::numeric_limits<std::uint32_t>::max();

    // A step, and its place relative to the place of its node.
    struct placed_step {
        std::uint32_t index  = std::numeric_limits<std::uint32_t>::max();
        std::uint32_t source = 0;
        std::int64_t offset  = 0;
    };

    const layout_node& node_at(std::uint32_t index) const { return _layout.nodes()[index]; }

    static step_link link_to(const placed_step& to, std::uint32_t source, std::int64_t offset, std::int64_t stride,
                             std::uint64_t packed_offset)
    {
        return {to.index, source + to.source, offset + to.offset, stride, packed_offset};
    }

    // Compiles each node once, however often it is used. limits::max_depth bounds the recursion.
    placed_step place(std::uint32_t index)
    {
        placed_step& known = _placed[index];
        if (known.index == placed_step().index) {
            known = make(node_at(index));
        }
        return known;
    }

    placed_step make(const layout_node& node)
    {
        block_run run;
        placed_step step;
        if (as_run(node, run, step)) {
            step.index = add_run(run);
            return step;
        }
        step                       = placed_step();
        const std::uint64_t blocks = node.num_blocks / node.count;
        if (node.count >= min_record_count && blocks <= max_parts && may_list(node, blocks)) {
            step.index = add_record(node);
            return step;
        }
        if (const group_kernels* group = zip_of(node)) {
            step.index = add_zip(node, *group);
            return step;
        }
        if (node.num_blocks <= max_listed_loop && may_list(node, node.num_blocks)) {
            const std::size_t first = _program.rows.size();
            list_node(node, 0, 0);
            step.index = add(table_of(first));
            return step;
        }
        return make_loop(node);
    }

    // Whether the plan has room for this many blocks of the node, one by one. If not, the node becomes a loop, which
    // needs no more than its entries do.
    bool may_list(const layout_node& node, std::uint64_t blocks)
    {
        const std::uint64_t usual  = max_listed_entry * node.num_entries;
        const std::uint64_t beyond = blocks - std::min(blocks, usual);
        if (beyond > _left_beyond) {
            return false;
        }
        _left_beyond -= beyond;
        return true;
    }

    // Recognises blocks of one length in at most two loops.
    bool as_run(const layout_node& node, block_run& run, placed_step& step) const
    {
        if (node.is_block()) {
            run = {.length = node.cycle_length};
            return true;
        }
        if (node.num_entries != 1) {
            return false;
        }
        const layout_entry& entry = _layout.entries_of(node)[0];
        const layout_node& child  = node_at(entry.child);
        if (!child.is_block() && child.depth > 1) {
            return false;
        }
        if (!as_run(child, run, step)) {
            return false;
        }
        step.source += entry.source;
        step.offset += entry.offset;
        if (child.is_block()) {
            run.count  = node.count;
            run.stride = entry.stride;
            return true;
        }
        run.outer_count       = node.count;
        run.outer_stride      = entry.stride;
        const bool short_rows = run.count <= max_short_row && run.length <= max_short_block;
        return !short_rows || node.count < min_record_count;
    }

    template <typename Form>
    std::uint32_t add(const Form& form)
    {
        _program.steps.push_back({form.packed_length, form});
        return static_cast<std::uint32_t>(_program.steps.size() - 1);
    }

    std::uint32_t add_run(const block_run& run)
    {
        return add(run_step{.packed_length = run.packed_length(),
                            .kernels       = &_kernels.blocks(run),
                            .is_panel      = is_panel(run),
                            .blocks        = run});
    }

    // Rows that share cache lines and lie within one stride of their blocks, so none of them overlap.
    bool is_panel(const block_run& run) const
    {
        const std::uint64_t stride = magnitude(run.stride), outer_stride = magnitude(run.outer_stride);
        return _kernels.blocks(run).gather_panel != nullptr && run.outer_count > 1 && run.count > 1 &&
               outer_stride >= run.length && outer_stride < cache_line && stride > cache_line &&
               run.outer_count <= (stride - run.length) / outer_stride + 1;
    }

    std::uint32_t add_record(const layout_node& node)
    {
        const std::size_t first = _program.parts.size(), first_column = _program.columns.size();
        std::uint64_t packed = 0;
        for (const layout_entry& entry : _layout.entries_of(node)) {
            visit(node_at(entry.child), entry.source, entry.offset,
                  [&](std::uint32_t source, std::int64_t offset, std::uint64_t length) {
                      const block_run column{.length = length, .count = 2, .stride = entry.stride};
                      _program.parts.push_back(
                          {offset, entry.stride, length, packed, source, &_kernels.blocks(column)});
                      packed += length;
                  });
        }
        const std::span<const record_part> parts = std::span(_program.parts).subspan(first);
        add_columns(parts);
        const bool has_map = add_map(parts);
        return add(record_step{.packed_length = node.packed_length,
                               .count         = node.count,
                               .cycle_length  = node.cycle_length,
                               .first         = static_cast<std::uint32_t>(first),
                               .size          = static_cast<std::uint32_t>(parts.size()),
                               .first_column  = static_cast<std::uint32_t>(first_column),
                               .num_columns   = static_cast<std::uint32_t>(_program.columns.size() - first_column),
                               .batch   = batch_of(parts, node.cycle_length, _program.columns.size() - first_column),
                               .map     = has_map ? static_cast<std::uint32_t>(_program.maps.size() - 1) : 0,
                               .permute = has_map ? _kernels.permute(_program.maps.back().words) : nullptr});
    }

    // Adds a map if one permutation can move the blocks of the record.
    bool add_map(std::span<const record_part> parts)
    {
        const std::optional<record_map> map = map_of(parts);
        if (!map || _kernels.permute(map->words) == nullptr) {
            return false;
        }
        _program.maps.push_back(*map);
        return true;
    }

    void add_columns(std::span<const record_part> parts)
    {
        for (std::size_t i = 0; i < parts.size();) {
            std::size_t size           = std::min(max_group, parts.size() - i);
            const group_kernels* group = nullptr;
            while (size > 1 && (group = group_of(parts.subspan(i, size))) == nullptr) {
                --size;
            }
            _program.columns.push_back({group, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(size)});
            i += size;
        }
    }

    const group_kernels* group_of(std::span<const record_part> parts) const
    {
        std::array<std::uint64_t, max_group> lengths;
        std::ranges::transform(parts, lengths.begin(), &record_part::length);
        return _kernels.group(std::span(lengths).first(parts.size()));
    }

    // Calls fn(source, offset, length) for each block below a node, in packed order. Use it only where blocks are few.
    template <typename Fn>
    void visit(const layout_node& node, std::uint32_t source, std::int64_t offset, Fn&& fn) const
    {
        if (node.is_block()) {
            fn(source, offset, node.cycle_length);
            return;
        }
        for (std::uint64_t i = 0; i < node.count; ++i) {
            for (const layout_entry& entry : _layout.entries_of(node)) {
                visit(node_at(entry.child), source + entry.source,
                      offset + entry.offset + static_cast<std::int64_t>(i) * entry.stride, fn);
            }
        }
    }

    void list_node(const layout_node& node, std::uint32_t source, std::int64_t offset)
    {
        if (node.is_block() && node.cycle_length <= max_row_length) {
            _program.rows.push_back({offset, static_cast<std::uint32_t>(node.cycle_length), source});
            return;
        }
        visit(node, source, offset, [&](std::uint32_t from, std::int64_t at, std::uint64_t length) {
            for (std::uint64_t cut; length > 0; length -= cut, at += static_cast<std::int64_t>(cut)) {
                cut = std::min(length, max_row_length);
                _program.rows.push_back({at, static_cast<std::uint32_t>(cut), from});
            }
        });
    }

    // Whether most rows are far from the ones before them.
    bool jumps(const table_step& table) const
    {
        const table_row* const rows = &_program.rows[table.first];
        std::uint32_t number        = 0;
        for (std::uint32_t i = 1; i < table.size; ++i) {
            const std::int64_t distance = rows[i].offset - rows[i - 1].offset;
            number += rows[i].source != rows[i - 1].source || magnitude(distance) >= min_jump ? 1 : 0;
        }
        return number > table.size / 2;
    }

    void fetch_ahead(table_step& table) const
    {
        const std::uint64_t mean = table.packed_length / std::max<std::uint64_t>(table.size, 1);
        if (table.packed_length < min_fetched_table || mean < min_fetched_row || mean > max_fetched_row ||
            !jumps(table)) {
            return;
        }
        table.rows_ahead_gather  = static_cast<std::uint8_t>(length_ahead / mean);
        table.rows_ahead_scatter = mean <= max_scattered_row ? table.rows_ahead_gather : std::uint8_t{0};
    }

    // Of the rows listed since `first`.
    table_step table_of(std::size_t first)
    {
        table_step table{.first = static_cast<std::uint32_t>(first),
                         .size  = static_cast<std::uint32_t>(_program.rows.size() - first)};
        make_room(_program.row_positions, table.size);
        for (std::size_t i = first; i < _program.rows.size(); ++i) {
            _program.row_positions.push_back(table.packed_length);
            table.packed_length += _program.rows[i].length;
            table.one_source = table.one_source && _program.rows[i].source == 0;
        }
        fetch_ahead(table);
        return table;
    }

    bool is_listed(const layout_entry& entry) const { return node_at(entry.child).num_blocks <= max_listed_entry; }

    // The end of the entries from `first` on that are single blocks of one length, source and stride.
    std::size_t even_until(std::span<const layout_entry> entries, std::size_t first) const
    {
        const layout_entry& entry = entries[first];
        const layout_node& block  = node_at(entry.child);
        if (!block.is_block() || _kernels.rows(block.cycle_length) == nullptr) {
            return first;
        }
        std::size_t end = first + 1;
        while (end < entries.size() && entries[end].source == entry.source && entries[end].stride == entry.stride &&
               node_at(entries[end].child).is_block() &&
               node_at(entries[end].child).cycle_length == block.cycle_length) {
            ++end;
        }
        return end;
    }

    // The end of the entries from `first` on that have one stride and go into one table, because each is few blocks and
    // no table of even rows fits.
    std::size_t listed_until(std::span<const layout_entry> entries, std::size_t first) const
    {
        std::uint32_t listed = no_child; // blocks whose rows are never even: most entries of long lists are alike
        std::size_t end      = first;
        while (end < entries.size() && entries[end].stride == entries[first].stride) {
            if (entries[end].child == listed) {
                ++end;
                continue;
            }
            const std::size_t even = even_until(entries, end);
            if (!is_listed(entries[end]) || even - end >= min_even_rows) {
                break;
            }
            listed = even == end ? entries[end].child : no_child;
            end    = std::max(even, end + 1);
        }
        return end;
    }

    std::uint32_t add_table(std::span<const layout_entry> entries)
    {
        const std::size_t first = _program.rows.size();
        make_room(_program.rows, entries.size());
        for (const layout_entry& entry : entries) {
            list_node(node_at(entry.child), entry.source, entry.offset);
        }
        return add(table_of(first));
    }

    // As push_back() does it, but once for all.
    template <typename Element>
    static void make_room(std::vector<Element>& elements, std::size_t more)
    {
        if (elements.capacity() - elements.size() < more) {
            elements.reserve(std::max(elements.size() + more, 2 * elements.capacity()));
        }
    }

    // All rows have source 0; the link holds the source of the entries.
    std::uint32_t add_even_table(std::span<const layout_entry> entries)
    {
        const std::size_t first    = _program.rows.size();
        const std::uint64_t length = node_at(entries[0].child).cycle_length;
        make_room(_program.rows, entries.size());
        for (const layout_entry& entry : entries) {
            _program.rows.push_back({entry.offset, static_cast<std::uint32_t>(length), 0});
        }
        table_step table = table_of(first);
        table.row_length = static_cast<std::uint32_t>(length);
        table.rows       = _kernels.rows(length);
        return add(table);
    }

    // Recognises runs of equally many small blocks that are neighbours in memory: an array of records packed as
    // separate arrays.
    const group_kernels* zip_of(const layout_node& node) const
    {
        const auto entries = _layout.entries_of(node);
        if (node.count != 1 || entries.size() < 2 || entries.size() > max_group) {
            return nullptr;
        }
        std::array<std::uint64_t, max_group> lengths;
        block_run first, run;
        std::int64_t next = entries[0].offset;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            placed_step step;
            if (!as_run(node_at(entries[i].child), run, step) || run.outer_count != 1 || run.count < min_record_count ||
                step.offset != 0 || step.source != 0 || entries[i].source != entries[0].source ||
                entries[i].offset != next) {
                return nullptr;
            }
            first = i == 0 ? run : first;
            if (run.count != first.count || run.stride != first.stride) {
                return nullptr;
            }
            lengths[i] = run.length;
            next += static_cast<std::int64_t>(run.length);
        }
        const bool apart = first.stride >= next - entries[0].offset;
        return apart ? _kernels.group(std::span(lengths).first(entries.size())) : nullptr;
    }

    std::uint32_t add_zip(const layout_node& node, const group_kernels& group)
    {
        std::vector<step_link> links;
        for (const layout_entry& entry : _layout.entries_of(node)) {
            links.push_back(link_to(place(entry.child), entry.source, entry.offset, 0, entry.packed_offset));
        }
        const block_run& run = as<run_step>(_program.steps[links[0].child])->blocks;
        zip_step zip{.packed_length = node.packed_length,
                     .count         = run.count,
                     .cycle_length  = node.packed_length / run.count,
                     .first         = static_cast<std::uint32_t>(_program.links.size()),
                     .size          = static_cast<std::uint32_t>(links.size()),
                     .stride        = run.stride,
                     .group         = &group};
        _program.links.insert(_program.links.end(), links.begin(), links.end());
        return add(zip);
    }

    placed_step make_loop(const layout_node& node)
    {
        std::vector<step_link> links;
        const auto entries = _layout.entries_of(node);
        for (std::size_t i = 0; i < entries.size();) {
            const layout_entry& entry = entries[i];
            if (const std::size_t even = even_until(entries, i); even - i >= min_even_rows) {
                links.push_back(
                    {add_even_table(entries.subspan(i, even - i)), entry.source, 0, entry.stride, entry.packed_offset});
                i = even;
                continue;
            }
            const std::size_t end = listed_until(entries, i);
            if (end - i < 2) {
                links.push_back(
                    link_to(place(entry.child), entry.source, entry.offset, entry.stride, entry.packed_offset));
                ++i;
                continue;
            }
            links.push_back({add_table(entries.subspan(i, end - i)), 0, 0, entry.stride, entry.packed_offset});
            i = end;
        }
        if (node.count == 1 && links.size() == 1) {
            return {links[0].child, links[0].source, links[0].offset};
        }
        const auto first = static_cast<std::uint32_t>(_program.links.size());
        _program.links.insert(_program.links.end(), links.begin(), links.end());
        return {add(loop_step{.packed_length = node.packed_length,
                              .count         = node.count,
                              .cycle_length  = node.cycle_length,
                              .first         = first,
                              .size          = static_cast<std::uint32_t>(links.size())})};
    }

    const layout& _layout;
    const kernel_library& _kernels = best_kernels();
    std::vector<placed_step> _placed;
    std::uint64_t _left_beyond = max_listed_beyond;
    compiled_program _program;
};

} // namespace

compiled_program compile_program(const layout& layout)
{
    return program_compiler(layout).compile();
}

} // namespace ucxl
