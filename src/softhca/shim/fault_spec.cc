#include "fault_spec.h"

#include "prm/command.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "softhca/core/arena/device_failure.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <optional>
#include <utility>

namespace ucxl::softhca
{
namespace
{

std::optional<std::uint64_t> parse_number(std::string_view text)
{
    const bool hexadecimal = text.starts_with("0x");
    text.remove_prefix(hexadecimal ? 2 : 0);
    std::uint64_t value = 0;
    const auto end      = text.data() + text.size();
    const auto read     = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
    return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

struct unit {
    std::string_view name;
    std::uint64_t factor;
};

// A number with one of these units after it, or without.
template <std::size_t Count>
std::optional<std::uint64_t> parse_scaled(std::string_view text, const unit (&units)[Count])
{
    for (const unit& known : units) {
        if (text.ends_with(known.name)) {
            const auto value = parse_number(text.substr(0, text.size() - known.name.size()));
            if (value && *value <= UINT64_MAX / known.factor) {
                return *value * known.factor;
            }
        }
    }
    return std::nullopt;
}

constexpr unit time_units[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
constexpr unit size_units[] = {{"K", 1024}, {"M", 1024 * 1024}, {"", 1}};

template <typename Enum>
std::expected<std::uint64_t, std::string> parse_name(std::string_view field, std::string_view text, std::uint64_t limit)
{
    for (const prm::named_value& known : prm::value_names<Enum>::values) {
        if (known.name == text) {
            return known.value;
        }
    }
    const auto value = parse_number(text);
    if (!value) {
        return std::unexpected(std::format("{}: '{}' is neither a number nor a name known here", field, text));
    }
    if (*value > limit) {
        return std::unexpected(std::format("{}: {} is above {:#x}", field, text, limit));
    }
    return *value;
}

struct kind_name {
    std::string_view name;
    fault_kind kind;
};

constexpr kind_name kinds[] = {
    {"command", fault_kind::command}, {"wqe", fault_kind::wqe},           {"delay", fault_kind::delay},
    {"drop", fault_kind::drop},       {"refuse", fault_kind::refuse},     {"fatal", fault_kind::fatal},
    {"remove", fault_kind::remove},   {"reset", fault_kind::reset},       {"port_down", fault_kind::port_down},
    {"keys", fault_kind::key_limit},  {"memic", fault_kind::memic_limit},
};

constexpr std::uint64_t most_time_ns = 60'000'000'000;

constexpr std::uint64_t last_unicast_lid = 0xbfff; // IBTA vol. 1, 4.1.3

bool is_limit(fault_kind kind)
{
    return kind == fault_kind::key_limit || kind == fault_kind::memic_limit;
}

// The text after the colon.
std::expected<std::uint64_t, std::string> parse_subject(fault_kind kind, std::string_view text)
{
    switch (kind) {
    case fault_kind::command:
        return parse_name<prm::command>("opcode", text, 0xffff);
    case fault_kind::refuse:
        return parse_name<refusable>("refuse", text, std::to_underlying(refusable::nested_repeat_block));
    default:
        return parse_name<prm::wqe_opcode>("opcode", text, 0x3f);
    }
}

// KIND, KIND:OPCODE or KIND=LIMIT.
std::expected<fault_rule, std::string> parse_head(std::string_view text)
{
    const auto end              = text.find_first_of(":=");
    const std::string_view name = text.substr(0, end);
    fault_rule rule;
    for (const kind_name& known : kinds) {
        if (known.name == name) {
            rule.kind = known.kind;
        }
    }
    if (rule.kind == fault_kind::none) {
        return std::unexpected(
            std::format("'{}' is not a kind of fault: command, wqe, delay, drop, refuse, port_down, fatal, remove, "
                        "reset, keys or memic",
                        name));
    }
    const char mark             = end == text.npos ? '\0' : text[end];
    const std::string_view rest = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (is_limit(rule.kind)) {
        const auto limit = parse_scaled(rest, size_units);
        if (mark != '=' || !limit) {
            return std::unexpected(
                std::format("{0}: a limit is needed, as in {0}=100 or {0}=64K, not '{1}'", name, rest));
        }
        rule.amount = *limit;
        return rule;
    }
    if (mark == '=') {
        return std::unexpected(std::format("{0}: an opcode follows a colon, as in {0}:0x8", name));
    }
    rule.status = rule.kind == fault_kind::command
                      ? static_cast<std::uint8_t>(std::to_underlying(prm::command_status::limit_exceeded))
                      : static_cast<std::uint8_t>(std::to_underlying(prm::cqe_syndrome::transport_retry_exceeded));
    rule.times  = rule.kind == fault_kind::delay || rule.kind == fault_kind::refuse ? UINT64_MAX : 1;
    if (rule.kind == fault_kind::refuse && mark != ':') {
        return std::unexpected("refuse: what is refused follows a colon, as in refuse:umr_start_addr");
    }
    if (mark == ':') {
        const auto opcode = parse_subject(rule.kind, rest);
        if (!opcode) {
            return std::unexpected(opcode.error());
        }
        rule.opcode = static_cast<std::uint32_t>(*opcode);
    }
    return rule;
}

std::expected<std::uint64_t, std::string> parse_count(std::string_view field, std::string_view text)
{
    const auto value = parse_number(text);
    if (!value || *value == 0) {
        return std::unexpected(std::format("{}: '{}' is not a number from 1 on", field, text));
    }
    return *value;
}

std::expected<std::uint64_t, std::string> parse_time(std::string_view field, std::string_view text)
{
    const auto time = parse_scaled(text, time_units);
    if (!time || *time == 0 || *time > most_time_ns) {
        return std::unexpected(std::format("{}: '{}' is not a time of at most 60s, as in 50us", field, text));
    }
    return *time;
}

std::expected<std::uint64_t, std::string> parse_device(std::string_view field, std::string_view text)
{
    constexpr std::string_view prefix = "mlx5_";
    const auto number = text.starts_with(prefix) ? parse_number(text.substr(prefix.size())) : std::nullopt;
    if (!number || *number >= max_functions) {
        return std::unexpected(std::format("{}: '{}' is not one of mlx5_0 to mlx5_{}", field, text, max_functions - 1));
    }
    return *number;
}

template <typename Field>
std::expected<void, std::string> assign(Field& into, const std::expected<std::uint64_t, std::string>& value)
{
    if (!value) {
        return std::unexpected(value.error());
    }
    into = static_cast<Field>(*value);
    return {};
}

std::expected<void, std::string> parse_field(fault_rule& rule, std::string_view text)
{
    const auto equals            = text.find('=');
    const std::string_view name  = text.substr(0, equals);
    const std::string_view value = equals == text.npos ? std::string_view() : text.substr(equals + 1);
    const bool counted           = !is_limit(rule.kind);
    if (name == "first" && counted) {
        return assign(rule.first, parse_count(name, value));
    }
    if (name == "times" && counted) {
        if (value == "all") {
            rule.times = UINT64_MAX;
            return {};
        }
        return assign(rule.times, parse_count(name, value));
    }
    if (name == "status" && rule.kind == fault_kind::command) {
        return assign(rule.status, parse_name<prm::command_status>(name, value, 0xff));
    }
    if (name == "syndrome" && rule.kind == fault_kind::wqe) {
        return assign(rule.status, parse_name<prm::cqe_syndrome>(name, value, 0xff));
    }
    if (name == "time" && (rule.kind == fault_kind::delay || end_of(change_of(rule.kind)) != change_kind::none)) {
        return assign(rule.amount, parse_time(name, value));
    }
    if (name == "after" && is_device_change(rule.kind)) {
        return assign(rule.after_ns, parse_time(name, value));
    }
    if (name == "device" && is_device_change(rule.kind)) {
        return assign(rule.function, parse_device(name, value));
    }
    return std::unexpected(std::format("'{}' is not a field of this kind of fault", name));
}

// DEVICE, time=TIME or lid=NUMBER.
std::expected<void, std::string> parse_change_part(asked_change& asked, std::string_view text, bool is_device)
{
    if (is_device) {
        return assign(asked.change.function, parse_device("device", text));
    }
    const auto equals            = text.find('=');
    const std::string_view name  = text.substr(0, equals);
    const std::string_view value = equals == text.npos ? std::string_view() : text.substr(equals + 1);
    const change_kind kind       = asked.change.kind;
    if (name == "time" && end_of(kind) != change_kind::none) {
        return assign(asked.time_ns, parse_time(name, value));
    }
    if (name == "lid" && kind == change_kind::port_up) {
        const auto lid = parse_number(value);
        if (!lid || *lid == 0 || *lid > last_unicast_lid) {
            return std::unexpected(
                std::format("lid: '{}' is not a local identifier from 1 to {:#x}", value, last_unicast_lid));
        }
        asked.change.lid = static_cast<std::uint16_t>(*lid);
        return {};
    }
    return std::unexpected(std::format("'{}' is not a field of this change", text));
}

} // namespace

std::expected<fault_rule, std::string> parse_fault(std::string_view text)
{
    auto comma = text.find(',');
    auto rule  = parse_head(text.substr(0, comma));
    while (rule && comma != text.npos) {
        text.remove_prefix(comma + 1);
        comma = text.find(',');
        if (const auto parsed = parse_field(*rule, text.substr(0, comma)); !parsed) {
            return std::unexpected(parsed.error());
        }
    }
    if (rule && rule->kind == fault_kind::delay && rule->amount == 0) {
        return std::unexpected("delay: a time is needed, as in delay:send,time=50us");
    }
    if (rule && rule->after_ns != 0 && (rule->opcode != any_opcode || rule->first != 0 || rule->times != 1)) {
        return std::unexpected("after: what comes at a time has no opcode, first or times");
    }
    if (rule && rule->after_ns == 0 && rule->function != 0) {
        return std::unexpected("device: only what comes at a time (after=) names a device");
    }
    if (rule && rule->first == 0) {
        rule->first = 1;
    }
    return rule;
}

std::expected<asked_change, std::string> parse_change(std::string_view text)
{
    constexpr struct {
        std::string_view name;
        change_kind kind;
    } words[] = {{"port_down", change_kind::port_down}, {"port_up", change_kind::port_up},
                 {"fatal", change_kind::fatal},         {"remove", change_kind::remove},
                 {"recover", change_kind::recover},     {"reset", change_kind::reset}};
    asked_change asked;
    auto end                    = std::min(text.find_first_of(":,"), text.size());
    const std::string_view name = text.substr(0, end);
    for (const auto& word : words) {
        if (word.name == name) {
            asked.change.kind = word.kind;
        }
    }
    if (asked.change.kind == change_kind::none) {
        return std::unexpected(std::format("'{}' is not port_down, port_up, fatal, remove, recover or reset", name));
    }
    const bool names_device = end < text.size() && text[end] == ':';
    for (bool first = names_device; end < text.size(); first = false) {
        const std::string_view rest = text.substr(end + 1);
        const std::string_view part = rest.substr(0, rest.find(','));
        end += 1 + part.size();
        if (const auto parsed = parse_change_part(asked, part, first); !parsed) {
            return std::unexpected(parsed.error());
        }
    }
    return asked;
}

std::expected<fault_plan, std::string> parse_faults(std::string_view text)
{
    fault_plan plan{};
    std::size_t count = 0;
    while (!text.empty()) {
        const auto end              = text.find(';');
        const std::string_view part = text.substr(0, end);
        text                        = end == text.npos ? std::string_view() : text.substr(end + 1);
        if (part.empty()) {
            continue;
        }
        if (count == max_fault_rules) {
            return std::unexpected(std::format("fault: more than {} rules", max_fault_rules));
        }
        const auto rule = parse_fault(part);
        if (!rule) {
            return std::unexpected(std::format("fault '{}': {}", part, rule.error()));
        }
        plan.rules[count++] = *rule;
    }
    return plan;
}

} // namespace ucxl::softhca
