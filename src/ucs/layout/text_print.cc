#include "text.h"
#include "wire_encode.h"

#include <format>

namespace ucxl
{

namespace
{

// Both printers stop after this many entries in total, because shared nodes make the text longer than the layout.
class printer
{
public:
    printer(const layout& layout, std::size_t max_entries) : _of(layout), _left(max_entries) {}

    std::string expression()
    {
        std::string text = _of.is_empty() ? "0" : placed(_of.root().source, _of.root().offset, _of.root().child);
        std::string bounds;
        for (std::uint32_t source = 0; source < _of.num_sources(); ++source) {
            const layout_bounds& set = _of.bounds(source);
            if (wire::has_set_bounds(set)) {
                bounds += bounds.empty() ? "," : ";";
                bounds += std::format("{}{},{}", prefix(source), set.lb, set.extent());
            }
        }
        return bounds.empty() ? text : std::format("resized({}{})", text, bounds);
    }

    std::string lines()
    {
        if (_of.is_empty()) {
            return "nothing\n";
        }
        line(0, std::format("source {} offset {}: ", _of.root().source, _of.root().offset), _of.root().child);
        return std::move(_lines);
    }

private:
    static std::string prefix(std::uint32_t source) { return source == 0 ? "" : std::format("{}:", source); }

    std::string placed(std::uint32_t source, std::int64_t offset, std::uint32_t child)
    {
        const layout_node& node = _of.nodes()[child];
        if (node.count == 1) {
            return "iov(" + parts(node, source, offset) + ")";
        }
        const std::string text = whole(child);
        return source == 0 && offset == 0 ? text : std::format("iov({}{}@{})", prefix(source), text, offset);
    }

    std::string parts(const layout_node& list, std::uint32_t source, std::int64_t offset)
    {
        std::string text;
        for (const layout_entry& entry : _of.entries_of(list)) {
            text += text.empty() ? "" : ",";
            if (_left == 0) {
                return text + "...";
            }
            --_left;
            text += std::format("{}{}@{}", prefix(source + entry.source), whole(entry.child), offset + entry.offset);
        }
        return text;
    }

    // Prints a node that is not a list, at offset 0 of source 0.
    std::string whole(std::uint32_t index)
    {
        const layout_node& node = _of.nodes()[index];
        if (node.is_block()) {
            return std::to_string(node.packed_length);
        }
        return node.num_entries == 1 ? nest_of_one(index) : entries_in_turn(node);
    }

    std::string nest_of_one(std::uint32_t index)
    {
        std::string counts, strides;
        std::size_t dims = 0;
        for (; _of.nodes()[index].num_entries == 1; ++dims) {
            const layout_node& node   = _of.nodes()[index];
            const layout_entry& entry = _of.entries_of(node)[0];
            counts += std::format("{}{}", dims > 0 ? "," : "", node.count);
            strides += std::format("{}{}", dims > 0 ? "," : "", entry.stride);
            index = entry.child;
        }
        return dims == 1 ? std::format("strided({},{},{})", counts, whole(index), strides)
                         : std::format("strided([{}]x{},[{}])", counts, whole(index), strides);
    }

    std::string entries_in_turn(const layout_node& node)
    {
        std::string text = "interleaved(";
        for (const layout_entry& entry : _of.entries_of(node)) {
            text += entry.packed_offset > 0 ? ";" : "";
            if (_left == 0) {
                return text + "...)";
            }
            --_left;
            text += std::format("{}{}@{},{},{}", prefix(entry.source), whole(entry.child), entry.offset, node.count,
                                entry.stride);
        }
        return text + ")";
    }

    void line(unsigned indent, const std::string& path, std::uint32_t index)
    {
        const layout_node& node = _of.nodes()[index];
        _lines.append(2 * indent, ' ');
        if (node.is_block()) {
            _lines += std::format("{}block of {} bytes\n", path, node.packed_length);
            return;
        }
        _lines += std::format("{}loop {} times over {} {}, {} bytes each time\n", path, node.count, node.num_entries,
                              node.num_entries == 1 ? "entry" : "entries", node.cycle_length);
        for (const layout_entry& entry : _of.entries_of(node)) {
            if (_left == 0) {
                _lines.append(2 * (indent + 1), ' ');
                _lines += "...\n";
                return;
            }
            --_left;
            const std::string source = entry.source == 0 ? "" : std::format("source +{} ", entry.source);
            const std::string stride = node.count == 1 ? "" : std::format(" stride {}", entry.stride);
            line(indent + 1, std::format("{}offset {}{}: ", source, entry.offset, stride), entry.child);
        }
    }

    const layout& _of;
    std::size_t _left;
    std::string _lines;
};

} // namespace

std::string to_text(const layout& layout, std::size_t max_entries)
{
    return printer(layout, max_entries).expression();
}

std::string describe(const layout& layout, std::size_t max_entries)
{
    return printer(layout, max_entries).lines();
}

} // namespace ucxl
