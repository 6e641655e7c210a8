#include "explain.h"

#include "blocks.h"
#include "tools/common/print_layout.h"
#include "tools/common/value_of.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

namespace ucxl::info
{

using nlohmann::ordered_json;
using tools::print_layout;

namespace
{

// The text lists at most this many sources and counts the others. JSON lists all.
constexpr std::uint32_t listed_sources = 16;

const char* name_of(ucp_layout_overlap_t overlap)
{
    switch (overlap) {
    case UCP_LAYOUT_OVERLAP_NONE:
        return "none";
    case UCP_LAYOUT_OVERLAP_SOME:
        return "some";
    case UCP_LAYOUT_OVERLAP_MAYBE:
        return "maybe";
    }
    return "unknown";
}

std::string indent(const std::string& lines)
{
    std::string result = "  ";
    for (const char c : lines) {
        result += c;
        if (c == '\n') {
            result += "  ";
        }
    }
    return result;
}

std::string describe_sources(const ucx_layout::layout& layout, std::uint32_t num_sources)
{
    std::string text;
    for (std::uint32_t source = 0; source < std::min(num_sources, listed_sources); ++source) {
        const ucp_layout_bounds_t bounds = tools::bounds(layout, source);
        text += fmt::format("  source {:<5} bytes from {} to {}", source, bounds.true_lb, bounds.true_ub);
        if (bounds.lb != bounds.true_lb || bounds.ub != bounds.true_ub) {
            text += fmt::format(", set bounds {} to {}", bounds.lb, bounds.ub);
        }
        text += '\n';
    }
    if (num_sources > listed_sources) {
        text += fmt::format("  and {} more\n", num_sources - listed_sources);
    }
    return text;
}

std::string list_blocks(const std::vector<block>& blocks)
{
    std::string text = fmt::format("first blocks\n  {:>8} {:>16} {:>12}\n", "source", "offset", "length");
    for (const block& each : blocks) {
        text += fmt::format("  {:>8} {:>16} {:>12}\n", each.source, each.offset, each.length);
    }
    return text;
}

} // namespace

std::string explain_as_text(const ucx_layout::layout& layout, std::size_t num_blocks)
{
    const ucp_layout_attr_t attr = tools::attributes(layout);
    const auto line = [](const char* name, const auto& value) { return fmt::format("{:<15}{}\n", name, value); };
    std::string text;
    text += line("layout", print_layout(layout, UCP_LAYOUT_PRINT_TEXT));
    text += line("packed length", attr.packed_length);
    text += line("extent", attr.extent);
    text += line("sources", attr.num_sources);
    text += describe_sources(layout, attr.num_sources);
    text += line("blocks", attr.num_blocks);
    text += line("block length", attr.min_block_length == attr.max_block_length
                                     ? fmt::format("{}", attr.max_block_length)
                                     : fmt::format("{} to {}", attr.min_block_length, attr.max_block_length));
    text += line("depth", attr.depth);
    text += line("overlap", name_of(attr.overlap));
    text += line("serialized", attr.serialized_length);
    text += line("hash", fmt::format("{:016x}", attr.hash));
    text += fmt::format("normal form\n{}\n", indent(print_layout(layout, UCP_LAYOUT_PRINT_NORMAL)));
    text += fmt::format("copied by\n{}\n", indent(print_layout(layout, UCP_LAYOUT_PRINT_PLAN)));
    const std::vector<block> blocks = first_blocks(layout, num_blocks);
    return blocks.empty() ? text : text + list_blocks(blocks);
}

std::string explain_as_json(const ucx_layout::layout& layout, std::size_t num_blocks)
{
    const ucp_layout_attr_t attr = tools::attributes(layout);
    ordered_json sources         = ordered_json::array();
    for (std::uint32_t source = 0; source < attr.num_sources; ++source) {
        const ucp_layout_bounds_t bounds = tools::bounds(layout, source);
        sources.push_back(
            {{"true_lb", bounds.true_lb}, {"true_ub", bounds.true_ub}, {"lb", bounds.lb}, {"ub", bounds.ub}});
    }
    ordered_json blocks = ordered_json::array();
    for (const block& each : first_blocks(layout, num_blocks)) {
        blocks.push_back({{"source", each.source}, {"offset", each.offset}, {"length", each.length}});
    }
    const ordered_json document{{"layout", print_layout(layout, UCP_LAYOUT_PRINT_TEXT)},
                                {"packed_length", attr.packed_length},
                                {"extent", attr.extent},
                                {"sources", std::move(sources)},
                                {"num_blocks", attr.num_blocks},
                                {"min_block_length", attr.min_block_length},
                                {"max_block_length", attr.max_block_length},
                                {"depth", attr.depth},
                                {"overlap", name_of(attr.overlap)},
                                {"serialized_length", attr.serialized_length},
                                {"hash", fmt::format("{:016x}", attr.hash)},
                                {"normal_form", print_layout(layout, UCP_LAYOUT_PRINT_NORMAL)},
                                {"plan", print_layout(layout, UCP_LAYOUT_PRINT_PLAN)},
                                {"blocks", std::move(blocks)}};
    return document.dump(2) + "\n";
}

std::string serialized_bytes(const ucx_layout::layout& layout)
{
    std::size_t length = tools::attributes(layout).serialized_length;
    std::string bytes(length, '\0');
    tools::check(ucp_layout_serialize(layout.get(), bytes.data(), &length), "ucp_layout_serialize");
    bytes.resize(length);
    return bytes;
}

std::string to_hex(const std::string& bytes)
{
    std::string text;
    text.reserve(2 * bytes.size() + 1);
    for (const char byte : bytes) {
        fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(byte));
    }
    return text + "\n";
}

std::string limits_as_text()
{
    return fmt::format("depth         {}\nsources       {}\nlist entries  {}\nlength        {} bytes, packed and from "
                       "a base address\n",
                       static_cast<unsigned>(UCP_LAYOUT_MAX_DEPTH), static_cast<unsigned>(UCP_LAYOUT_MAX_SOURCES),
                       static_cast<unsigned>(UCP_LAYOUT_MAX_ENTRIES), UCP_LAYOUT_MAX_LENGTH);
}

} // namespace ucxl::info
