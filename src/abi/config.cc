#include "config.h"

#include "uct_forms.h"
#include "ucx.h"

#include <array>
#include <cstdlib>
#include <limits>
#include <new>

#include <ucs/datastruct/list.h>

namespace ucxl::abi
{

namespace
{

using read_function = decltype(config_functions::read);

struct field_parser {
    config_functions functions;
    const void* arg;
};

// UCX's parsers of numbers also read negative ones, "inf", "nan" and "auto".
int read_between(const char* parser, const char* text, void* value, const void* arg, double least, double most)
{
    double number = 0;
    if (find_function<read_function>(parser)(text, &number, arg) == 0 || !(number >= least && number <= most)) {
        return 0;
    }
    *static_cast<double*>(value) = number;
    return 1;
}

// UCP ends the process when it plans with 1 byte per second or less.
int read_bandwidth(const char* text, void* value, const void* arg)
{
    return read_between("ucs_config_sscanf_bw", text, value, arg, 2, std::numeric_limits<double>::max());
}

int read_time(const char* text, void* value, const void* arg)
{
    return read_between("ucs_config_sscanf_time", text, value, arg, 0, std::numeric_limits<double>::infinity());
}

// UCP adds and subtracts them, and ends the process where the result is no number.
int read_price(const char* text, void* value, const void* arg)
{
    return read_between("ucs_config_sscanf_time", text, value, arg, 0, 1e9);
}

// The addresses of all other functions are those of libucs itself, because UCX recognises some parsers by them.
field_parser parser_of(const option& option)
{
    const auto make = [](read_function read, const char* write, const char* clone, const char* release,
                         const char* help, const void* arg) {
        return field_parser{
            {
                .read    = read,
                .write   = write != nullptr ? find_function<decltype(config_functions::write)>(write) : nullptr,
                .clone   = find_function<decltype(config_functions::clone)>(clone),
                .release = find_function<decltype(config_functions::release)>(release),
                .help    = find_function<decltype(config_functions::help)>(help),
            },
            arg};
    };
    const auto stock = [](const char* read) { return find_function<read_function>(read); };
    const auto plain = [&](read_function read, const char* write, const char* clone, const char* expected) {
        return make(read, write, clone, "ucs_config_release_nop", "ucs_config_help_generic", expected);
    };
    const auto table = [&](const char* name) {
        return make(stock("ucs_config_sscanf_table"), nullptr, "ucs_config_clone_table", "ucs_config_release_table",
                    "ucs_config_help_table", find_symbol(name));
    };
    switch (option.type) {
    case option_type::bandwidth:
        return plain(read_bandwidth, "ucs_config_sprintf_bw", "ucs_config_clone_double",
                     "bandwidth value, at least 2 bytes/s: <number>[T|G|M|K]B|b[[p|/]s]");
    case option_type::time:
        return plain(read_time, "ucs_config_sprintf_time", "ucs_config_clone_double",
                     "time value, not negative: <number>[m|s|ms|us|ns]");
    case option_type::price:
        return plain(read_price, "ucs_config_sprintf_time", "ucs_config_clone_double",
                     "time value, 0 to 1e9 seconds: <number>[m|s|ms|us|ns]");
    case option_type::memory_units:
        return plain(stock("ucs_config_sscanf_memunits"), "ucs_config_sprintf_memunits", "ucs_config_clone_ulong",
                     "memory units: <number>[b|kb|mb|gb], \"inf\", or \"auto\"");
    case option_type::unsigned_integer:
        return plain(stock("ucs_config_sscanf_uint"), "ucs_config_sprintf_uint", "ucs_config_clone_uint",
                     "unsigned integer");
    case option_type::names:
        return make(stock("ucs_config_sscanf_bitmap"), "ucs_config_sprintf_bitmap", "ucs_config_clone_uint",
                    "ucs_config_release_nop", "ucs_config_help_bitmap", option.names);
    case option_type::name:
        return make(stock("ucs_config_sscanf_enum"), "ucs_config_sprintf_enum", "ucs_config_clone_uint",
                    "ucs_config_release_nop", "ucs_config_help_enum", option.names);
    case option_type::md_options:
        return table("uct_md_config_table");
    case option_type::iface_options:
        return table("uct_iface_config_table");
    }
    return {};
}

template <typename Field>
std::string text_of(const char* prefix, const char* name)
{
    Field fields[2]{};
    fields[0].name          = name;
    fields[0].default_value = "";
    fields[0].doc           = "";
    fields[0].parser        = {
               .read    = find_function<decltype(config_functions::read)>("ucs_config_sscanf_string"),
               .write   = find_function<decltype(config_functions::write)>("ucs_config_sprintf_string"),
               .clone   = find_function<decltype(config_functions::clone)>("ucs_config_clone_string"),
               .release = find_function<decltype(config_functions::release)>("ucs_config_release_string"),
               .help    = find_function<decltype(config_functions::help)>("ucs_config_help_generic"),
    };
    fields[0].arg = "string";
    if constexpr (requires { fields[0].describe; }) {
        fields[0].describe = find_function<void (*)()>("ucs_config_doc_nop");
    }
    auto* const table = reinterpret_cast<ucs_config_field_t*>(fields);
    char* text        = nullptr;
    auto entry        = make_entry(name, prefix, table, sizeof(text));
    if (ucs_config_parser_fill_opts(&text, &entry, UCS_DEFAULT_ENV_PREFIX, 0) != UCS_OK) {
        return {};
    }
    std::string copy = text;
    ucs_config_parser_release_opts(&text, table);
    return copy;
}

template <typename Field>
ucs_config_field_t* make(std::span<const option> options)
{
    auto* const fields = new (std::nothrow) Field[options.size() + 1]{};
    if (fields == nullptr) {
        return nullptr;
    }
    for (std::size_t i = 0; i < options.size(); ++i) {
        const auto& option  = options[i];
        const auto parser   = parser_of(option);
        Field& field        = fields[i];
        field.name          = option.name;
        field.default_value = option.default_value;
        field.doc           = option.description;
        field.offset        = option.offset;
        field.parser        = parser.functions;
        field.arg           = parser.arg;
        if constexpr (requires { field.describe; }) {
            field.describe = find_function<void (*)()>("ucs_config_doc_nop");
        }
    }
    return reinterpret_cast<ucs_config_field_t*>(fields);
}

} // namespace

ucs_config_field_t* make_fields(std::span<const option> options)
{
    // Not from attached(): a library that needs libucs only has no form.
    return find_symbol("ucs_config_doc_nop") != nullptr ? make<config_field_1_17>(options)
                                                        : make<config_field_1_16>(options);
}

bool is_valid(const option& option, const char* value)
{
    constexpr std::size_t max_value_length = 64; // none of our values is longer
    alignas(std::max_align_t) std::array<std::byte, max_value_length> scratch{};
    const auto parser = parser_of(option);
    if (parser.functions.read(value, scratch.data(), parser.arg) == 0) {
        return false;
    }
    parser.functions.release(scratch.data(), parser.arg);
    return true;
}

bool read_value(const option& option, const char* value, void* values)
{
    const auto parser = parser_of(option);
    return parser.functions.read(value, static_cast<std::byte*>(values) + option.offset, parser.arg) != 0;
}

std::string expected_value(const option& option)
{
    std::array<char, 128> text{};
    const auto parser = parser_of(option);
    parser.functions.help(text.data(), text.size() - 1, parser.arg);
    return text.data();
}

ucs_config_global_list_entry_t make_entry(const char* name, const char* prefix, ucs_config_field_t* fields,
                                          std::size_t length)
{
    return {.name = name, .prefix = prefix, .table = fields, .size = length, .list = {}, .flags = 0};
}

void publish_entry(ucs_config_global_list_entry_t& entry)
{
    auto* tables = find_object<ucs_list_link_t>("ucs_config_global_list");
    if (tables == nullptr) {
        return;
    }
    // A program that names the list, as ucx_info does, may have it in memory of its own (a copy relocation). UCX then
    // uses that one, and the original only points to it.
    if (tables->next->prev != tables) {
        tables = tables->next;
    }
    ucs_list_add_tail(tables, &entry.list);
}

std::string configured_text(const char* prefix, const char* name)
{
    if (find_symbol("ucs_config_sscanf_string") == nullptr) {
        return {};
    }
    return find_symbol("ucs_config_doc_nop") != nullptr ? text_of<config_field_1_17>(prefix, name)
                                                        : text_of<config_field_1_16>(prefix, name);
}

bool has_old_protocols()
{
    constexpr const char* protocols_option = "PROTO_ENABLE";
    const std::string value                = configured_text("", protocols_option);
    const auto read                        = find_function<decltype(config_functions::read)>("ucs_config_sscanf_bool");
    int enabled                            = 1;
    return !value.empty() && read != nullptr && read(value.c_str(), &enabled, nullptr) != 0 && enabled == 0;
}

} // namespace ucxl::abi
