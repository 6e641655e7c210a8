#include "fault_spec.h"

#include "prm/command.h"
#include "prm/cqe.h"
#include "prm/wqe.h"

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
    {"keys", fault_kind::key_limit},  {"memic", fault_kind::memic_limit},
};

constexpr std::uint64_t most_time_ns = 60'000'000'000;

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
        return parse_name<refusable>("refuse", text, std::to_underlying(refusable::indirect_atomic));
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
            std::format("'{}' is not a kind of fault: command, wqe, delay, drop, refuse, fatal, keys or memic", name));
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
    if (name == "time" && rule.kind == fault_kind::delay) {
        const auto time = parse_scaled(value, time_units);
        if (!time || *time > most_time_ns) {
            return std::unexpected(std::format("time: '{}' is not a time of at most 60s, as in 50us", value));
        }
        rule.amount = *time;
        return {};
    }
    return std::unexpected(std::format("'{}' is not a field of this kind of fault", name));
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
    if (rule && rule->first == 0) {
        rule->first = 1;
    }
    return rule;
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
