#include "options.h"

#include "ucs/sys/option_table.h"
#include "uct/abi/log.h"
#include "uct/abi/ucx.h"

namespace ucxl::mlx5
{

namespace
{

struct key_options {
    int address;
};

// In the order of address_choice.
const char* address_names[] = {"auto", "umr", "ksm", nullptr};

constexpr abi::option fields[] = {
    {"ADDRESS", "auto",
     "How a region gets its virtual address: umr (the bind request moves the start of its key), ksm (a second key of\n"
     "fixed entities lies over it) or auto (umr where a loopback test finds that it works, otherwise ksm).",
     offsetof(key_options, address), abi::option_type::name, address_names},
};

constinit option_table<key_options> table("layout keys", "LAYOUT_KEYS_", fields);

[[gnu::constructor]] void register_options()
{
    if (const auto found = abi::attach_libucs(); !found) {
        ucs_error("layout keys have no options: %s", found.error().message.c_str());
        return;
    }
    table.add();
    // Read now, because ucp_init reports variables that nobody has read as unused.
    static_cast<void>(chosen_address_method());
}

} // namespace

address_choice chosen_address_method()
{
    return static_cast<address_choice>(table.read_or({.address = 0}).address);
}

} // namespace ucxl::mlx5
