// Any characters as a layout in JSON, as the tools take it from a file (src/tools/common/json_layout.h): refused with a
// message and in no other way, or a layout that can be written as bytes and comes back from them.
#include "asks_for_much.h"
#include "fuzz_target.h"

#include "tools/common/json_layout.h"
#include "tools/common/value_of.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

using namespace ucxl;
using fuzz::require;

namespace
{

std::optional<ucx_layout::layout> parsed(const std::string& text)
{
    try {
        return tools::parse_json_layout(text);
    } catch (const tools::json_layout_error& error) {
        require(!std::string_view(error.what()).empty(), "an error says why");
        return std::nullopt;
    }
}

} // namespace

UCXL_FUZZ_TARGET(layout_json)
{
    const std::string text(reinterpret_cast<const char*>(data), size);
    if (fuzz::asks_for_much(text)) {
        return 0;
    }
    const auto layout = parsed(text);
    if (!layout) {
        return 0;
    }
    std::vector<std::byte> bytes(tools::attributes(*layout).serialized_length);
    require(layout->serialize(bytes).has_value(), "a layout has a wire form");
    const auto back = ucx_layout::layout::deserialize(bytes);
    require(back && back->get() == layout->get(), "a layout comes back from its wire form");
    return 0;
}
