#include "option_table.h"

#include <array>
#include <cstdlib>
#include <format>
#include <mutex>
#include <string>

#include <ucs/debug/log_def.h>

namespace ucxl
{

namespace
{

// None of our option values is longer.
constexpr std::size_t max_value_length = 64;

bool is_valid(const ucs_config_field_t& field, const char* value)
{
    alignas(std::max_align_t) std::array<std::byte, max_value_length> scratch{};
    if (field.parser.read(value, scratch.data(), field.parser.arg) == 0) {
        return false;
    }
    field.parser.release(scratch.data(), field.parser.arg);
    return true;
}

std::string expected_by(const ucs_config_field_t& field)
{
    std::array<char, 128> text{};
    field.parser.help(text.data(), text.size() - 1, field.parser.arg);
    return text.data();
}

} // namespace

void basic_option_table::add()
{
    static std::mutex& lock = *new std::mutex; // of all tables; UCX's list has none
    const std::lock_guard guard(lock);
    if (!_is_added) {
        ucs_list_add_tail(&ucs_config_global_list, &_entry.list);
        _is_added = true;
    }
}

result<void> basic_option_table::read_into(void* values)
{
    for (const ucs_config_field_t* field = _entry.table; field->name != nullptr; ++field) {
        const std::string variable = std::string(UCS_DEFAULT_ENV_PREFIX) + _entry.prefix + field->name;
        const char* const value    = std::getenv(variable.c_str());
        if (value != nullptr && !is_valid(*field, value)) {
            return fail(errc::invalid_param, std::format("{} is '{}', expected: {} (default: {})", variable, value,
                                                         expected_by(*field), field->dfl_value));
        }
    }
    // Whatever is still wrong is in a configuration file, or memory ran out; UCX logs which.
    if (ucs_config_parser_fill_opts(values, &_entry, UCS_DEFAULT_ENV_PREFIX, 0) != UCS_OK) {
        return fail(errc::invalid_param, std::format("the options of {} could not be read", _entry.name));
    }
    return {};
}

void basic_option_table::log_defaults(const error& error)
{
    ucs_error("%s; the defaults are used", error.message.c_str());
}

} // namespace ucxl
