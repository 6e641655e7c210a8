#include "draw.h"

#include "blocks.h"
#include "scale.h"
#include "svg.h"
#include "tools/common/print_layout.h"
#include "tools/common/value_of.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace ucxl::info
{

namespace
{

constexpr double picture_width = 960, left = 84, right = 936;
constexpr double row_height = 22, row_distance = 58, band_height = 84;
constexpr double title_base = 24, summary_base = 42, legend_base = 62, first_row = 84;
constexpr double digit_width       = 6; // of the axes' font, about
constexpr std::size_t title_length = 112;

// Told apart by people who do not see all colours (Okabe and Ito), but for the last one.
constexpr std::array<const char*, drawn_sources> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                         "#e69f00", "#56b4e9", "#8c6d31", "#6a3d9a"};
constexpr const char* not_drawn = "#8c959f";

struct placed_block {
    block memory;
    extent packed; // in the window
    std::size_t row;

    extent bytes() const
    {
        return {.begin = memory.offset, .end = memory.offset + static_cast<std::ptrdiff_t>(memory.length)};
    }
};

// Of memory of one source, or the window.
struct row {
    std::string name;
    double y;
    std::vector<piece> line;
    std::map<std::ptrdiff_t, double> places;

    rectangle place_of(const extent& bytes) const
    {
        const double begin = places.at(bytes.begin);
        return {.x = begin, .y = y, .width = places.at(bytes.end) - begin, .height = row_height};
    }
};

const char* colour_of(std::uint32_t source)
{
    return source < drawn_sources ? colours[source] : not_drawn;
}

class drawing
{
public:
    explicit drawing(const ucx_layout::layout& layout)
        : _attr(tools::attributes(layout)), _layout(tools::print_layout(layout, UCP_LAYOUT_PRINT_TEXT)),
          _num_rows(std::min(_attr.num_sources, drawn_sources))
    {
        std::ptrdiff_t packed = 0;
        for (const block& each : first_blocks(layout, drawn_blocks)) {
            const std::ptrdiff_t end = packed + static_cast<std::ptrdiff_t>(each.length);
            _blocks.push_back({.memory = each, .packed = {packed, end}, .row = each.source});
            packed = end;
        }
    }

    std::string text()
    {
        const std::string title = _layout.size() <= title_length ? _layout : _layout.substr(0, title_length) + " ...";
        add_head(title);
        place_rows();
        add_bands();
        for (const row& each : _rows) {
            add_line_of(each);
        }
        add_blocks();
        return _picture.text(add_notes(), title);
    }

private:
    bool has_row(const placed_block& each) const { return each.row < _num_rows; }
    const row& window() const { return _rows.back(); }

    void add_head(const std::string& title)
    {
        _picture.add_text(16, title_base, R"(class="title" font-family="monospace" font-size="13" font-weight="bold")",
                          title);
        _picture.add_text(16, summary_base, R"(class="summary")",
                          fmt::format("{} bytes in {} block{} of {} source{}", _attr.packed_length, _attr.num_blocks,
                                      _attr.num_blocks == 1 ? "" : "s", _attr.num_sources,
                                      _attr.num_sources == 1 ? "" : "s"));
        double x = left;
        for (std::uint32_t source = 0; source < _num_rows; ++source, x += 90) {
            _picture.add_rect({.x = x, .y = legend_base - 9, .width = 10, .height = 10},
                              fmt::format(R"(class="legend" data-source="{}" fill="{}")", source, colour_of(source)));
            _picture.add_text(x + 15, legend_base, R"(class="legend")", fmt::format("source {}", source));
        }
    }

    void place_rows()
    {
        std::vector<std::vector<extent>> bytes(_num_rows + 1);
        for (const placed_block& each : _blocks) {
            if (has_row(each)) {
                bytes[each.row].push_back(each.bytes());
            }
            bytes.back().push_back(each.packed);
        }
        std::vector<std::vector<piece>> lines;
        std::ranges::transform(bytes, std::back_inserter(lines), [](const auto& each) { return pieces_between(each); });
        _scale = fit(lines, right - left);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const bool is_window = i == _num_rows;
            const double y       = first_row + row_distance * static_cast<double>(i) +
                             (is_window && _num_rows > 0 ? band_height - row_distance + row_height : 0);
            _rows.push_back({.name   = is_window ? "window" : fmt::format("source {}", i),
                             .y      = y,
                             .line   = lines[i],
                             .places = places_on(lines[i], _scale, left)});
        }
    }

    void add_bands()
    {
        for (const placed_block& each : _blocks) {
            if (has_row(each)) {
                _picture.add_band(
                    _rows[each.row].place_of(each.bytes()), window().place_of(each.packed),
                    fmt::format(R"(class="band" fill="{}" fill-opacity="0.22")", colour_of(each.memory.source)));
            }
        }
    }

    // Its name, its bytes, the marks of what is shortened, the axis.
    void add_line_of(const row& drawn)
    {
        _picture.add_text(16, drawn.y + 15, R"(class="row")", drawn.name);
        if (drawn.line.empty()) {
            _picture.add_text(left, drawn.y + 15, R"(class="row" fill="#57606a")", "no block of it is drawn");
            return;
        }
        const extent all{drawn.line.front().bytes.begin, drawn.line.back().bytes.end};
        _picture.add_rect(drawn.place_of(all), R"(class="line" fill="#eaeef2" stroke="#afb8c1" stroke-width="0.5")");
        double free_from = left;
        for (const piece& each : drawn.line) {
            add_tick(drawn, each.bytes.begin, free_from);
        }
        add_tick(drawn, all.end, free_from);
    }

    // Where the numbers would run into each other, only the first one.
    void add_tick(const row& drawn, std::ptrdiff_t offset, double& free_from)
    {
        const std::string label = fmt::format("{}", offset);
        const double x          = drawn.places.at(offset);
        const double width      = digit_width * static_cast<double>(label.size()) + 4;
        const bool is_last      = x + width > picture_width - 2;
        if ((is_last ? x - width : x) < free_from) {
            return;
        }
        _picture.add_line(x, drawn.y + row_height, x, drawn.y + row_height + 4, R"(stroke="#57606a")");
        _picture.add_text(
            is_last ? x - 2 : x + 2, drawn.y + row_height + 12,
            fmt::format(R"(class="axis" font-size="10" text-anchor="{}" fill="#57606a")", is_last ? "end" : "start"),
            label);
        free_from = x + width + 4;
    }

    void add_blocks()
    {
        for (std::size_t i = 0; i < _blocks.size(); ++i) {
            const placed_block& each = _blocks[i];
            const std::string hint =
                fmt::format("block {}: {} bytes at offset {} of source {}, byte {} of the window", i,
                            each.memory.length, each.memory.offset, each.memory.source, each.packed.begin);
            if (has_row(each)) {
                add_block(_rows[each.row].place_of(each.bytes()), "memory", each.memory, each.memory.offset, hint);
            }
            add_block(window().place_of(each.packed), "window", each.memory, each.packed.begin, hint);
        }
        for (const row& drawn : _rows) {
            for (const piece& each : drawn.line) {
                if (_scale.shortens(each)) {
                    add_break(drawn.place_of(each.bytes));
                }
            }
        }
        add_numbers();
    }

    void add_block(const rectangle& place, const char* kind, const block& memory, std::ptrdiff_t offset,
                   const std::string& hint)
    {
        _picture.add_rect(place,
                          fmt::format(R"(class="{}" data-source="{}" data-offset="{}" data-length="{}" fill="{}" )"
                                      R"(fill-opacity="0.8" stroke="#ffffff" stroke-width="0.5")",
                                      kind, memory.source, offset, memory.length, colour_of(memory.source)),
                          hint);
    }

    // In packed order. Where blocks begin at the same byte of memory, all their numbers, in as much room as the longest
    // of them has.
    void add_numbers()
    {
        std::map<std::pair<std::size_t, std::ptrdiff_t>, std::pair<std::string, rectangle>> in_memory;
        for (std::size_t i = 0; i < _blocks.size(); ++i) {
            const placed_block& each = _blocks[i];
            add_number(window().place_of(each.packed), fmt::format("{}", i));
            if (has_row(each)) {
                const rectangle place = _rows[each.row].place_of(each.bytes());
                auto& [numbers, room] = in_memory[{each.row, each.memory.offset}];
                numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", i);
                room = place.width > room.width ? place : room;
            }
        }
        for (const auto& [begin, label] : in_memory) {
            add_number(label.second, label.first);
        }
    }

    void add_number(const rectangle& place, const std::string& numbers)
    {
        if (place.width >= digit_width * static_cast<double>(numbers.size()) + 2) {
            _picture.add_text(place.x + 2, place.y + 15, R"(class="number" font-size="9" fill="#ffffff")", numbers);
        }
    }

    // Two strokes across what is not drawn at its length.
    void add_break(const rectangle& place)
    {
        const double middle = place.x + place.width / 2;
        for (const double x : {middle - 2, middle + 2}) {
            _picture.add_line(x - 2, place.bottom() + 2, x + 2, place.y - 2,
                              R"(class="break" stroke="#24292f" stroke-width="1")");
        }
    }

    // The height of the picture.
    double add_notes()
    {
        std::vector<std::string> notes;
        if (_attr.num_sources > drawn_sources) {
            notes.push_back(fmt::format("Sources {} to {} have no row; their blocks are grey in the window.",
                                        drawn_sources, _attr.num_sources - 1));
        }
        if (_blocks.size() < _attr.num_blocks) {
            notes.push_back(fmt::format("Only the first {} blocks are drawn; {} more follow, bytes {} to {} of the "
                                        "window.",
                                        _blocks.size(), _attr.num_blocks - _blocks.size(), _blocks.back().packed.end,
                                        _attr.packed_length));
        }
        const auto is_short = [&](const row& each) {
            return std::ranges::any_of(each.line, [&](const piece& part) { return _scale.shortens(part); });
        };
        if (std::ranges::any_of(_rows, is_short)) {
            notes.emplace_back("Two strokes mark what is longer than it is drawn.");
        }
        if (_blocks.empty()) {
            notes.emplace_back("The layout has no bytes.");
        }
        double y = window().y + row_height + 34;
        for (const std::string& note : notes) {
            _picture.add_text(left, y, R"(class="note")", note);
            y += 16;
        }
        return y;
    }

    ucp_layout_attr_t _attr;
    std::string _layout;
    std::uint32_t _num_rows;
    std::vector<placed_block> _blocks;
    scale _scale{};
    std::vector<row> _rows; // the sources', then the window's
    svg_picture _picture{picture_width};
};

} // namespace

std::string draw_as_svg(const ucx_layout::layout& layout)
{
    return drawing(layout).text();
}

} // namespace ucxl::info
