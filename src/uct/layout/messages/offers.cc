#include "offers.h"

#include "abi/component.h"
#include "abi/software_atomics.h"
#include "abi/window_types.h"

#include <algorithm>

namespace ucxl
{

namespace
{

// Memory of a network card also has the type RDMA. But it has a key of the card, and a window without a usable key of
// cards has only those of our own components.
bool only_messages_reach(const abi::remote_memory& memory)
{
    return abi::types_of_windows().serves(memory.type) && !memory.is_reached_by_atomics &&
           std::ranges::all_of(memory.components, abi::is_own);
}

} // namespace

bool hook_offers()
{
    return abi::offer_software_atomics(only_messages_reach);
}

} // namespace ucxl
