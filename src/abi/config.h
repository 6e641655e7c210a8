// Options in the form of UCX's configuration system that the attached UCX has.
//
// Example:
//     constexpr option options[] = {{"BW", "20GBs", "Bandwidth", offsetof(values, bandwidth), option_type::bandwidth}};
//     entry.table = make_fields(options);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <ucs/config/types.h>

extern "C" {
#include <ucs/config/parser.h>
}

namespace ucxl::abi
{

// The types of the values: double, double (seconds), the same for what UCP plans with, size_t, unsigned, unsigned mask
// of names, int index of a name.
enum class option_type : std::uint8_t {
    bandwidth,
    time,
    price,
    memory_units,
    unsigned_integer,
    names,
    name,
    md_options,    // all options of UCT's memory domains
    iface_options, // all options of UCT's interfaces
};

struct option {
    const char* name;
    const char* default_value;
    const char* description;
    std::size_t offset;
    option_type type;
    const char* const* names = nullptr; // for `names` and `name`, ends with null
};

// A table that ends with an empty field; it is never freed, because UCX keeps tables for ever. Null if memory ran out.
// To be called after attach() or attach_libucs().
ucs_config_field_t* make_fields(std::span<const option> options);

bool is_valid(const option& option, const char* value);

// Stores the value of an option at its place in `values`. Returns false if it is bad; what is stored is then undefined.
bool read_value(const option& option, const char* value, void* values);

// What UCX expects as the value, in words.
std::string expected_value(const option& option);

// An entry of UCX's list of tables, with a table from make_fields().
ucs_config_global_list_entry_t make_entry(const char* name, const char* prefix, ucs_config_field_t* fields,
                                          std::size_t length);

// Adds an entry to UCX's list of tables, where `ucx_info -cf` finds it.
void publish_entry(ucs_config_global_list_entry_t& entry);

// The text of the option UCX_<prefix><name>, from the environment or else from a configuration file. Empty if it is
// nowhere, and before attach().
std::string configured_text(const char* prefix, const char* name);

// Whether UCX works with its older protocols in all contexts without options of their own.
bool has_old_protocols();

} // namespace ucxl::abi
