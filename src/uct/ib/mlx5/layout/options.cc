#include "options.h"

#include "ucs/sys/option_table.h"
#include "uct/abi/log.h"
#include "uct/abi/ucx.h"

namespace ucxl::mlx5
{

namespace
{

// In the order of address_choice.
const char* address_names[] = {"auto", "umr", "ksm", nullptr};
// In the order of same_host_choice.
const char* same_host_names[] = {"auto", "always", "never", nullptr};

constexpr key_options defaults{.address = 0, .same_host = 0, .spare = 8};

constexpr abi::option fields[] = {
    {"ADDRESS", "auto",
     "How a region gets its virtual address: umr (the bind request moves the start of its key), ksm (a second key of\n"
     "fixed entities lies over it) or auto (umr where a loopback test finds that it works, otherwise ksm).",
     offsetof(key_options, address), abi::option_type::name, address_names},
    {"SAME_HOST", "auto",
     "Whether peers on the same host reach windows through the device: auto (unless lay_shm or lay_cma is in use),\n"
     "always or never. The process that uses the window decides.",
     offsetof(key_options, same_host), abi::option_type::name, same_host_names},
    {"SPARE", "8",
     "Memory keys to make in advance for windows, on each device with the first window. Making one takes long.",
     offsetof(key_options, spare), abi::option_type::unsigned_integer},
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
    static_cast<void>(read_key_options());
}

} // namespace

key_options read_key_options()
{
    return table.read_or(defaults);
}

address_choice chosen_address_method()
{
    return static_cast<address_choice>(read_key_options().address);
}

} // namespace ucxl::mlx5
