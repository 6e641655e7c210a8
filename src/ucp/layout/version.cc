// ucp_layout_get_version and ucp_layout_get_version_string: the version of configure.ac.
#include "ucp_layout.h"

#include "config.h"

#include <array>
#include <charconv>
#include <string_view>

namespace
{

// Reads major, minor and release from "1.0.0" or "1.1.0-rc1".
constexpr std::array<unsigned, 3> parse(std::string_view text)
{
    std::array<unsigned, 3> numbers{};
    const char* at = text.data();
    for (unsigned& number : numbers) {
        at = std::from_chars(at, text.data() + text.size(), number).ptr + 1;
    }
    return numbers;
}

constexpr auto version = parse(PACKAGE_VERSION);
static_assert(version[0] == UCP_LAYOUT_API_MAJOR && version[1] == UCP_LAYOUT_API_MINOR,
              "ucp_layout.h and configure.ac are of different versions");

} // namespace

void ucp_layout_get_version(unsigned* major_version, unsigned* minor_version, unsigned* release_number)
{
    unsigned* const outputs[] = {major_version, minor_version, release_number};
    for (std::size_t i = 0; i < version.size(); ++i) {
        if (outputs[i] != nullptr) {
            *outputs[i] = version[i];
        }
    }
}

const char* ucp_layout_get_version_string(void)
{
    return PACKAGE_VERSION;
}
