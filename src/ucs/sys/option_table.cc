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
    const std::lock_guard guard(table_lock());
    if (!make()) {
        return fail(errc::no_device, std::format("the options of {} cannot be read: no UCX is in use", _name));
    }
    for (const auto& option : _options) {
        const std::string variable = std::string(UCS_DEFAULT_ENV_PREFIX) + _prefix + option.name;
        const char* const value    = std::getenv(variable.c_str());
        if (value != nullptr && !abi::is_valid(option, value)) {
            return fail(errc::invalid_param, std::format("{} is '{}', expected: {} (default: {})", variable, value,
                                                         abi::expected_value(option), option.default_value));
        }
    }
    // Whatever is still wrong is in a configuration file, or memory ran out; UCX logs which.
    if (ucs_config_parser_fill_opts(values, &_entry, UCS_DEFAULT_ENV_PREFIX, 0) != UCS_OK) {
        return fail(errc::invalid_param, std::format("the options of {} could not be read", _name));
    }
    return {};
}

void basic_option_table::log_defaults(const error& error)
{
    ucs_error("%s; the defaults are used", error.message.c_str());
}

} // namespace ucxl
