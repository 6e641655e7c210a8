// A table of options, UCX_<PREFIX><NAME>, in UCX's own configuration system: `ucx_info -cf` shows it.
//
// A bad value, of the environment or of a configuration file, is said once and by the option's full name; UCX's own
// parser names the field without its prefix, and not at all what it belongs to.
//
// Example:
//     constexpr abi::option options[] = {{"CACHE_SIZE", "64", "Windows kept", offsetof(cache_options, size), ...}};
//     constinit option_table<cache_options> table("window cache", "LAYOUT_", options);
//     table.add();
//     auto options = UCXL_TRY(table.read());
#pragma once

#include "abi/config.h"
#include "sys/error.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace ucxl
{

// What does not depend on the type of the values.
class basic_option_table
{
public:
    // Adds the table to the tables of the UCX that is attached, once. Any thread.
    void add();

protected:
    constexpr basic_option_table(const char* name, const char* prefix, std::span<const abi::option> options,
                                 std::size_t length)
        : _name(name), _prefix(prefix), _options(options), _length(length)
    {
    }

    // Fills in `values`. Errors: invalid_param, with the variable, its value and what was expected.
    result<void> read_into(void* values);
    // The same, but each bad value is logged, and that option has its default. Errors: no UCX is in use, no memory.
    result<void> read_good_into(void* values);
    static void log_defaults(const error& error);

private:
    // In the form of the UCX in use, once. Returns false if there is none, or no memory.
    bool make();
    // `on_bad` logs a bad value or returns it as the error.
    result<void> read_into(void* values, result<void> (*on_bad)(const error& bad));
    std::string variable_of(const abi::option& option) const;
    // From the environment, or else from a configuration file. None if it is nowhere.
    std::optional<std::string> text_of(const abi::option& option) const;
    result<void> check(const abi::option& option) const;

    const char* _name;
    const char* _prefix;
    std::span<const abi::option> _options;
    std::size_t _length;
    ucs_config_global_list_entry_t _entry{};
    bool _is_added = false;
};

// Values without strings or arrays: nothing has to be released. Objects have static lifetime and constant
// initialisation (constinit), because UCX keeps pointers to them.
template <typename Values>
class option_table : public basic_option_table
{
public:
    constexpr option_table(const char* name, const char* prefix, std::span<const abi::option> options)
        : basic_option_table(name, prefix, options, sizeof(Values))
    {
    }

    // Reads the environment now. Errors: invalid_param, with the variable, its value and what was expected.
    result<Values> read()
    {
        Values values{};
        UCXL_TRY(read_into(&values));
        return values;
    }

    // The same, but a bad value is logged, and that option has its default. Where none can be read, all are `defaults`.
    Values read_or(const Values& defaults)
    {
        Values values{};
        if (const auto done = read_good_into(&values); !done) {
            log_defaults(done.error());
            return defaults;
        }
        return values;
    }
};

} // namespace ucxl
