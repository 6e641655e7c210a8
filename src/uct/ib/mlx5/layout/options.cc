#include "options.h"

#include "abi/log.h"
#include "abi/ucx.h"

namespace ucxl::mlx5
{

namespace
{

[[gnu::constructor]] void attach_options()
{
    if (const auto found = abi::attach_libucs(); !found) {
        ucs_error("layout keys have no options: %s", found.error().message.c_str());
        return;
    }
    // Read now, because ucp_init reports variables that nobody has read as unused.
    static_cast<void>(read_key_options());
}

} // namespace

key_address_option chosen_address_method()
{
    return static_cast<key_address_option>(read_key_options().address);
}

} // namespace ucxl::mlx5
