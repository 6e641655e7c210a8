// Any characters as a layout text: refused with a message, or a layout that comes back from its own text.
#include "fuzz_target.h"

#include "ucs/layout/text.h"

using namespace ucxl;
using fuzz::require;

namespace
{

// A short text can ask for a long list on purpose; that is not what is looked for here.
bool asks_for_much(std::string_view text)
{
    std::size_t digits = 0;
    const bool is_list = text.contains("..");
    for (char c : text) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (is_list && (digits > 3 || c == 'K' || c == 'M' || c == 'G')) {
            return true;
        }
    }
    return false;
}

} // namespace

UCXL_FUZZ_TARGET(layout_text)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (asks_for_much(text)) {
        return 0;
    }
    auto made = parse_text(text);
    if (!made) {
        require(!made.error().message.empty(), "an error says why");
        return 0;
    }
    const std::string normal = to_text(**made, 1 << 16);
    if (normal.contains("...")) {
        return 0;
    }
    auto back = parse_text(normal);
    require(back.has_value(), normal + (back ? "" : ": " + back.error().message));
    require(**back == **made, normal + " came back as " + to_text(**back, 1 << 16));
    return 0;
}
