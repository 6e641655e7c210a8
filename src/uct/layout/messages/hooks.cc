#include "hooks.h"

#include "offers.h"
#include "requests.h"
#include "ucs/sys/option_table.h"

#include "abi/log.h"

#include <array>
#include <cstddef>

namespace ucxl
{

namespace
{

constexpr const char* as_before =
    "a range that is in no window is dropped or read as zeros, one that a peer gives another "
    "memory type ends the process, and the initiator is told nothing";

std::array hooks = {
    hook{"put", "ucp_am_handler_UCP_AM_ID_PUT",
         "puts that peers send as messages stay inside windows, and their initiator is told if they do not", as_before,
         hook_puts},
    hook{"get", "ucp_am_handler_UCP_AM_ID_GET_REQ",
         "gets that peers send as messages stay inside windows, and fail at their initiator if they do not", as_before,
         hook_gets},
    hook{"atomic", "ucp_am_handler_UCP_AM_ID_ATOMIC_REQ",
         "atomics that peers send as messages work on windows, inside one block, and fail at their initiator elsewhere",
         "they end the process that owns the window", hook_atomics},
    hook{"reply", "ucp_am_handler_UCP_AM_ID_GET_REP", "requests of this process that a peer refused end with an error",
         "they never end, and reports of refused puts are lost", hook_replies},
    hook{"offer", "ucp_get_amo_fetch_proto",
         "atomics on windows that no network card reaches go by messages, also where a card does those on other memory",
         "they fail on endpoints that use a card for atomics", hook_offers},
};

const char* names[] = {"put", "get", "atomic", "reply", "offer", nullptr};
static_assert(std::size(names) == hooks.size() + 1);

struct hook_options {
    std::uint64_t enabled; // bits, in the order of `hooks`
};

constexpr abi::option fields[] = {
    {"HOOKS", "put,get,atomic,reply,offer",
     "Handlers and protocols of UCX that the library changes, separated by commas. An empty list changes none.\n"
     "'ucx_layout_info --hooks' describes each hook. Read when the library is loaded.",
     offsetof(hook_options, enabled), abi::option_type::names, names}};

constexpr hook_options defaults{.enabled = UCS_MASK(hooks.size())};

constinit option_table<hook_options> table("layout hooks", "LAYOUT_", fields);

} // namespace

std::span<const hook> all_hooks()
{
    return hooks;
}

void install_hooks()
{
    const std::uint64_t enabled = table.read_or(defaults).enabled;
    for (std::size_t i = 0; i < hooks.size(); ++i) {
        hook& each = hooks[i];
        if ((enabled & UCS_BIT(i)) == 0) {
            each.state = hook_state::off;
        } else if (each.install()) {
            each.state = hook_state::active;
        } else {
            each.state = hook_state::unknown;
            ucs_debug("ucx-layout: %s of this UCX is not the known one; without the hook, %s", each.symbol,
                      each.without);
        }
    }
}

void register_hook_options()
{
    table.add();
}

} // namespace ucxl
