#include "option_table.h"

#include <array>
#include <cstdlib>
#include <format>

namespace ucxl
{

namespace
{

// No option of ours is larger once it is read.
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

result<void> read_options(void* values, ucs_config_global_list_entry_t& table)
{
    for (const ucs_config_field_t* field = table.table; field->name != nullptr; ++field) {
        const std::string variable = std::string(UCS_DEFAULT_ENV_PREFIX) + table.prefix + field->name;
        const char* const value    = std::getenv(variable.c_str());
        if (value != nullptr && !is_valid(*field, value)) {
            return fail(errc::invalid_param,
                        std::format("{} is '{}', expected: {}", variable, value, expected_by(*field)));
        }
    }
    // What is left to be wrong is in a configuration file, or lacks memory; UCX says which.
    if (ucs_config_parser_fill_opts(values, &table, UCS_DEFAULT_ENV_PREFIX, 0) != UCS_OK) {
        return fail(errc::invalid_param, std::format("the options of {} could not be read", table.name));
    }
    return {};
}

} // namespace ucxl
