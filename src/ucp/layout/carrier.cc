#include "carrier.h"

#include "hardware_keys.h"
#include "options.h"

namespace ucxl
{

namespace
{

std::string why_copied(const cached_window& cached)
{
    if (!cached.why_copied.empty()) {
        return cached.why_copied;
    }
    if (cached.target->carrier() == window_carrier::copies) {
        return "UCX_LAYOUT_KEYS_WINDOWS is copies";
    }
    if (hardware_keys() == nullptr) {
        return why_no_hardware_keys();
    }
    return "no mlx5 device was asked for a key: the window has no memory handle in a context with one";
}

} // namespace

carrier_choice carrier_of(const cached_window& cached)
{
    const window_keys* const keys = hardware_keys();
    const bool has_key            = keys != nullptr && keys->has_key(cached.target->address());
    return {.has_key = has_key, .why_copied = has_key ? std::string() : why_copied(cached)};
}

} // namespace ucxl
