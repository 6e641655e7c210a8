#include "settings.h"

#include "fault_spec.h"

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

} // namespace

settings settings_of_environment()
{
    return {.devices   = variable(devices_variable),
            .functions = variable(functions_variable),
            .profile   = variable(profile_variable),
            .order     = variable(order_variable),
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
    if (given.profile == "cx6") {
        options.costs = profile::cx6;
    } else if (given.profile == "bf3") {
        options.costs = profile::bf3;
    } else if (!given.profile.empty() && given.profile != "none") {
        return std::unexpected(std::format("profile: '{}' is not none, cx6 or bf3", given.profile));
    }
    const auto seed = parse_order(given.order);
    if (!seed) {
        return std::unexpected(seed.error());
    }
    options.adversarial_seed = *seed;
    const auto faults        = parse_faults(given.faults);
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
