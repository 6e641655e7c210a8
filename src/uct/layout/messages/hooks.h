// Where this library reaches into stock UCX: objects of UCX that it changes when it is loaded, one hook each. Every
// hook can be left out (UCX_LAYOUT_HOOKS) and says by itself what it is for. Without hooks UCX is as it was, with a few
// components more.
//
// Invariant: a hook is put in place before the first worker exists, and stays.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ucxl
{

enum class hook_state : std::uint8_t {
    absent,  // the library is not in use, see uct_layout_status()
    off,     // left out by UCX_LAYOUT_HOOKS
    unknown, // this build of UCX has not what the hook expects there
    active,
};

struct hook {
    const char* name;    // in UCX_LAYOUT_HOOKS
    const char* symbol;  // of UCX: what is changed
    const char* purpose; // and why
    const char* without; // what happens if it is left out
    bool (*install)();   // false: not known, nothing was changed
    hook_state state = hook_state::absent;
};

// All that there are.
std::span<const hook> all_hooks();

// Puts those in place that UCX_LAYOUT_HOOKS lets. Once, when UCX was found to be known.
void install_hooks();

// Adds the option to UCX's list of options, once.
void register_hook_options();

} // namespace ucxl
