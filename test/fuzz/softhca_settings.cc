// Any characters as the settings of softhca-run and as a change of its device: refused with a message that begins with
// the name of the setting, or options within their limits. A line of the input for each setting.
#include "fuzz_target.h"

#include "softhca/shim/fault_spec.h"
#include "softhca/shim/settings.h"

#include <algorithm>
#include <string>
#include <string_view>

using namespace ucxl;
using namespace ucxl::softhca;
using fuzz::require;

namespace
{

struct named_setting {
    std::string_view name; // as errors begin
    std::string settings::* text;
};

constexpr named_setting known_settings[] = {
    {"devices", &settings::devices}, {"functions", &settings::functions}, {"profile", &settings::profile},
    {"times", &settings::times},     {"order", &settings::order},         {"netdev", &settings::netdev},
    {"fault", &settings::faults},
};

std::string_view next_line(std::string_view& text)
{
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

void check_setting(const named_setting& setting, std::string_view text)
{
    settings given;
    given.*setting.text = text;
    const auto options  = to_options(given);
    if (!options) {
        require(options.error().starts_with(setting.name), "'" + options.error() + "' names the setting");
        return;
    }
    require(options->netdev.back() == 0, "a name ends");
    for (const fault_rule& rule : options->faults.rules) {
        require(rule.function < max_functions, "a fault is of a function that may be there");
    }
    if (setting.text == &settings::order && !text.empty() && text != "posted") {
        require(options->adversarial_seed.has_value(), "another order is the adversarial one");
    }
}

} // namespace

UCXL_FUZZ_TARGET(softhca_settings)
{
    std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const named_setting& each : known_settings) {
        check_setting(each, next_line(text));
    }
    const auto change = parse_change(next_line(text));
    require(change || !change.error().empty(), "an error says why");
    if (const auto place = parse_fabric_place(next_line(text))) {
        const auto again = parse_fabric_place(to_text(*place));
        require(again && again->process == place->process && again->file == place->file,
                "a place comes back from its text");
    }
    return 0;
}
