// The places where this library changes stock UCX: objects of UCX that it changes when it is loaded, one hook each.
// UCX_LAYOUT_HOOKS can leave out every hook, and each describes its purpose. Without hooks UCX only has a few more
// components.
//
// Invariant: a hook is installed before the first worker exists, and stays.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ucxl
{

enum class hook_state : std::uint8_t {
    absent,  // the library is not in use, see uct_layout_status()
    off,     // left out by UCX_LAYOUT_HOOKS
    unknown, // this build of UCX lacks the object that the hook changes
    active,
};

struct hook {
    const char* name;    // its name in UCX_LAYOUT_HOOKS
    const char* symbol;  // the object of UCX that it changes
    const char* purpose; // why it changes it
    const char* without; // what happens without the hook
    bool (*install)();   // false: the object is not the known one, and nothing was changed
    hook_state state = hook_state::absent;
};

std::span<const hook> all_hooks();

// Installs the hooks that UCX_LAYOUT_HOOKS allows. Called once, after abi_check() succeeded.
void install_hooks();

// Adds the option to UCX's list of options, once.
void register_hook_options();

} // namespace ucxl
