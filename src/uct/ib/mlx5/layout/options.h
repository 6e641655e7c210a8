// The option of layout keys, which users without UCP have, too.
#pragma once

#include "ucs/window/key_options.h"

namespace ucxl::mlx5
{

key_address_option chosen_address_method();

} // namespace ucxl::mlx5
