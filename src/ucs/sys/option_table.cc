#include "option_table.h"

#include "abi/log.h"
#include "abi/ucx.h"
#include "sys/fork.h"

#include <cstdlib>
#include <format>
#include <mutex>
#include <string>

namespace ucxl
{

namespace
{

std::mutex& table_lock()
{
    // Of all tables; UCX's list has none.
    static std::mutex& lock = *[] {
        auto* const made = new std::mutex;
        hold_over_fork<[]() -> std::mutex& { return table_lock(); }>();
        return made;
    }();
    return lock;
}

// Others read options under locks of theirs, so fork takes it after these: it is made when the library is loaded.
[[gnu::constructor(200)]] void make_table_lock_at_load()
{
    table_lock();
}

} // namespace

bool basic_option_table::make()
{
    if (_entry.table == nullptr && abi::find_symbol("ucs_config_parser_fill_opts") != nullptr) {
        _entry = abi::make_entry(_name, _prefix, abi::make_fields(_options), _length);
    }
    return _entry.table != nullptr;
}

void basic_option_table::add()
{
    const std::lock_guard guard(table_lock());
    if (!_is_added && make()) {
        abi::publish_entry(_entry);
        _is_added = true;
    }
}

result<void> basic_option_table::read_into(void* values)
{
    return read_into(values, [](const error& bad) -> result<void> { return std::unexpected(bad); });
}

result<void> basic_option_table::read_good_into(void* values)
{
    return read_into(values, [](const error& bad) -> result<void> {
        ucs_error("%s; the default is used", bad.message.c_str());
        return {};
    });
}

result<void> basic_option_table::read_into(void* values, result<void> (*on_bad)(const error& bad))
{
    const std::lock_guard guard(table_lock());
    if (!make()) {
        return fail(errc::no_device, std::format("the options of {} cannot be read: no UCX is in use", _name));
    }
    bool has_bad = false;
    for (const auto& option : _options) {
        if (const auto good = check(option); !good) {
            UCXL_TRY(on_bad(good.error()));
            has_bad = true;
        }
    }
    if (has_bad) {
        // UCX's parser would say the same again.
        for (const auto& option : _options) {
            const auto text = text_of(option);
            if (!text || !abi::read_value(option, text->c_str(), values)) {
                abi::read_value(option, option.default_value, values);
            }
        }
    } else if (ucs_config_parser_fill_opts(values, &_entry, UCS_DEFAULT_ENV_PREFIX, 0) != UCS_OK) {
        return fail(errc::invalid_param, std::format("the options of {} could not be read", _name)); // UCX logs why
    }
    return {};
}

std::string basic_option_table::variable_of(const abi::option& option) const
{
    return std::string(UCS_DEFAULT_ENV_PREFIX) + _prefix + option.name;
}

std::optional<std::string> basic_option_table::text_of(const abi::option& option) const
{
    // Asked first in any case: it tells UCX that somebody reads the variable.
    std::string text = abi::configured_text(_prefix, option.name);
    if (text.empty() && std::getenv(variable_of(option).c_str()) == nullptr) {
        return std::nullopt;
    }
    return text;
}

result<void> basic_option_table::check(const abi::option& option) const
{
    if (const auto text = text_of(option); text && !abi::is_valid(option, text->c_str())) {
        return fail(errc::invalid_param, std::format("{} is '{}', expected: {} (default: {})", variable_of(option),
                                                     *text, abi::expected_value(option), option.default_value));
    }
    return {};
}

void basic_option_table::log_defaults(const error& error)
{
    ucs_error("%s; the defaults are used", error.message.c_str());
}

} // namespace ucxl
