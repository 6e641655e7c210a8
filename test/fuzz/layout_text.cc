// Any characters as a layout text: refused with a message, or a layout that comes back from its own text.
#include "asks_for_much.h"
#include "fuzz_target.h"

#include "ucs/layout/text.h"

using namespace ucxl;
using fuzz::require;

UCXL_FUZZ_TARGET(layout_text)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (fuzz::asks_for_much(text)) {
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
