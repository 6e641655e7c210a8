#include "settings.h"

#include "fault_spec.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <format>
#include <random>

namespace ucxl::softhca
{
namespace
{

std::string variable(const char* name)
{
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

template <typename Number>
bool parse_whole(std::string_view text, Number& into)
{
    const auto end  = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, into);
    return read.ec == std::errc() && read.ptr == end;
}

// A name, and changes of it: "cx6dx,imaicl=0".
std::expected<card, std::string> parse_profile(std::string_view profile)
{
    const auto name = profile.substr(0, profile.find(','));
    auto found      = card_named(name.empty() ? "none" : name);
    if (!found) {
        return std::unexpected(std::format("profile: '{}' is not {}", name, card_names()));
    }
    for (std::string_view rest = profile.substr(std::min(name.size() + 1, profile.size())); !rest.empty();) {
        const auto change = rest.substr(0, rest.find(','));
        const auto equals = std::min(change.find('='), change.size());
        unsigned value    = 0;
        if (equals == change.size() || !parse_whole(change.substr(equals + 1), value) ||
            !set_capability(*found, change.substr(0, equals), value)) {
            return std::unexpected(std::format(
                "profile: '{}' is no capability with a value it can have, such as imaicl=0; see softhca-run(1)",
                change));
        }
        rest.remove_prefix(std::min(change.size() + 1, rest.size()));
    }
    return *found;
}

constexpr std::string_view adversarial = "adversarial";
constexpr std::string_view seed_key    = ",seed=";

std::expected<std::optional<std::uint64_t>, std::string> parse_order(std::string_view order)
{
    if (order.empty() || order == "posted") {
        return std::nullopt;
    }
    if (order == adversarial) {
        return 1;
    }
    std::uint64_t seed = 0;
    if (!order.starts_with(adversarial) || !order.substr(adversarial.size()).starts_with(seed_key) ||
        !parse_whole(order.substr(adversarial.size() + seed_key.size()), seed)) {
        return std::unexpected(
            std::format("order: '{}' is not posted, adversarial or adversarial,seed=N with N below 2^64", order));
    }
    return seed;
}

// What the kernel takes as the name of an interface (dev_valid_name in net/core/dev.c).
std::expected<netdev_name, std::string> parse_netdev(std::string_view name)
{
    netdev_name parsed{};
    if (name.size() >= parsed.size() || name == "." || name == ".." ||
        std::ranges::any_of(name,
                            [](unsigned char each) { return each == '/' || each == ':' || std::isspace(each); })) {
        return std::unexpected(std::format("netdev: '{}' is no name of a network interface: at most {} bytes, without "
                                           "/, : and white space",
                                           name, parsed.size() - 1));
    }
    std::ranges::copy(name, parsed.begin());
    return parsed;
}

} // namespace

settings settings_of_environment()
{
    return {.devices   = variable(devices_variable),
            .functions = variable(functions_variable),
            .profile   = variable(profile_variable),
            .times     = variable(times_variable),
            .order     = variable(order_variable),
            .netdev    = variable(netdev_variable),
            .faults    = variable(fault_variable),
            .trace     = variable(trace_variable),
            .stats     = variable(stats_variable)};
}

std::expected<fabric_options, std::string> to_options(const settings& given)
{
    fabric_options options;
    if (!given.devices.empty() && !parse_whole(given.devices, options.devices)) {
        return std::unexpected(std::format("devices: '{}' is not a number from 1 to {}", given.devices, max_devices));
    }
    if (!given.functions.empty() && !parse_whole(given.functions, options.functions_per_device)) {
        return std::unexpected(
            std::format("functions: '{}' is not a number from 1 to {}", given.functions, max_functions));
    }
    if (given.times == "cx6") {
        options.costs = card_times::cx6;
    } else if (given.times == "bf3") {
        options.costs = card_times::bf3;
    } else if (!given.times.empty() && given.times != "none") {
        return std::unexpected(std::format("times: '{}' is not none, cx6 or bf3", given.times));
    }
    const auto card = parse_profile(given.profile);
    if (!card) {
        return std::unexpected(card.error());
    }
    options.card    = *card;
    const auto seed = parse_order(given.order);
    if (!seed) {
        return std::unexpected(seed.error());
    }
    options.adversarial_seed = *seed;
    const auto netdev        = parse_netdev(given.netdev);
    if (!netdev) {
        return std::unexpected(netdev.error());
    }
    options.netdev    = *netdev;
    const auto faults = parse_faults(given.faults);
    if (!faults) {
        return std::unexpected(faults.error());
    }
    options.faults = *faults;
    return options;
}

std::string order_with_seed(const std::string& order)
{
    return order == adversarial ? std::format("{}{}{}", order, seed_key, std::random_device()()) : order;
}

std::optional<fabric_place> parse_fabric_place(std::string_view text)
{
    fabric_place place;
    const auto colon = text.find(':');
    if (colon == text.npos || !parse_whole(text.substr(0, colon), place.process) ||
        !parse_whole(text.substr(colon + 1), place.file) || place.process <= 0 || place.file < 0) {
        return std::nullopt;
    }
    return place;
}

std::string to_text(const fabric_place& place)
{
    return std::format("{}:{}", place.process, place.file);
}

} // namespace ucxl::softhca
