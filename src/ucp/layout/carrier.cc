#include "carrier.h"

#include "hardware_keys.h"
#include "options.h"
#include "ucs/layout/footprint.h"

namespace ucxl
{

namespace
{

std::string why_copied(const cached_window& cached)
{
    if (!cached.why_copied.empty()) {
        return cached.why_copied;
    }
    if (carrier_option() == window_carrier_option::copies) {
        return "UCX_LAYOUT_KEYS_WINDOWS is copies";
    }
    if (hardware_keys() == nullptr) {
        return why_no_hardware_keys();
    }
    return "no mlx5 device was asked for a key: the window has no memory handle in a context with one";
}

// As UCX_LAY_CMA_MIN_BLOCK by default.
constexpr std::uint64_t least_block_for_the_kernel = 16384;

// From here on one processor takes longer for the cache lines on both sides than two processors that each pack those of
// their own side: 8 bytes of each line.
constexpr double sparse = 8;

} // namespace

std::optional<window_carrier> carrier_without_keys(const layout& layout, bool has_shared_memory)
{
    const std::uint64_t length = layout.packed_length();
    const bool is_long         = length >= least_direct_length(has_shared_memory);
    if (!has_shared_memory) {
        return is_long && length > 0 && length / layout.blocks().count >= least_block_for_the_kernel
                   ? std::optional(window_carrier::direct)
                   : std::nullopt;
    }
    return is_long && (length == 0 || touched_length(layout) < sparse * static_cast<double>(length))
               ? window_carrier::direct
               : window_carrier::copies;
}

carrier_choice carrier_of(const cached_window& cached)
{
    const window_keys* const keys = hardware_keys();
    const bool has_key            = keys != nullptr && keys->has_key(cached.target->address());
    if (has_key) {
        return {.carrier = UCP_LAYOUT_CARRIER_KEYS, .why_no_key = {}};
    }
    // A window that is not in the part for keys never gets one.
    const bool is_decided = cached.had_memory_handle || cached.target->carrier() != window_carrier::keys;
    return {.carrier    = is_decided ? UCP_LAYOUT_CARRIER_COPIES : UCP_LAYOUT_CARRIER_UNDECIDED,
            .why_no_key = why_copied(cached)};
}

} // namespace ucxl
