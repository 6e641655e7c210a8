#include "options.h"

#include <cstddef>

extern "C" {
#include <ucs/config/parser.h>
}

namespace ucxl::mlx5
{

namespace
{

struct key_options {
    int address;
};

// In the order of address_choice.
const char* address_names[] = {"auto", "umr", "ksm", nullptr};

ucs_config_field_t key_option_table[] = {
    {"ADDRESS", "auto",
     "How a region at a virtual address gets there: umr (the bind request moves the start of its key), ksm (another\n"
     "key, of fixed entities, lies over it) or auto (umr where a loopback test finds that it works, else ksm).",
     offsetof(key_options, address), UCS_CONFIG_TYPE_ENUM(address_names)},
    {},
};

ucs_config_global_list_entry_t key_option_entry;

// Filled in here and not by an initialiser, which might run after this constructor and cut the entry out of the list
// again.
[[gnu::constructor]] void register_options()
{
    key_option_entry.name   = "layout keys";
    key_option_entry.prefix = "LAYOUT_KEYS_";
    key_option_entry.table  = key_option_table;
    key_option_entry.size   = sizeof(key_options);
    ucs_list_add_tail(&ucs_config_global_list, &key_option_entry.list);
    static_cast<void>(chosen_address_method()); // read now: ucp_init calls variables nobody has read unused
}

} // namespace

address_choice chosen_address_method()
{
    key_options options{};
    const auto status = ucs_config_parser_fill_opts(&options, &key_option_entry, "UCX_", 0);
    return status == UCS_OK ? static_cast<address_choice>(options.address) : address_choice::automatic;
}

} // namespace ucxl::mlx5
