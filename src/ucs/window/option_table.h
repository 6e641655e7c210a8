// Reading a table of options from the environment, so that what is wrong is said once and by name.
//
// UCX's own parser names the field without its prefix, and not at all what it belongs to.
//
// Example: window_config config; if (auto ok = read_options(&config, table); !ok) { return std::unexpected(ok.error());
// }
#pragma once

#include "ucs/layout/error.h"

extern "C" {
#include <ucs/config/parser.h>
}

namespace ucxl
{

// Fills in what `table` describes; strings in it are to be released as ucs_config_parser_release_opts() does. Errors:
// invalid_param, with the variable, its value and what was expected; then nothing has to be released.
result<void> read_options(void* values, ucs_config_global_list_entry_t& table);

} // namespace ucxl
