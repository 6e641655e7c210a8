#include "decision.h"

#include "hardware_keys.h"
#include "options.h"
#include "sys/rollback.h"
#include "ucs/layout/footprint.h"
#include "window_cache.h"

#include "abi/log.h"

#include <optional>
#include <utility>

namespace ucxl
{

namespace
{

// As UCX_LAY_CMA_MIN_BLOCK by default.
constexpr std::uint64_t least_block_for_the_kernel = 16384;

// From here on one processor takes longer for the cache lines on both sides than two processors that each pack those of
// their own side: 8 bytes of each line.
constexpr double sparse = 8;

// Of a window without a hardware key: whether peers of this host reach its memory in one pass, or all copies go through
// a buffer. None: they may try, but gain nothing. Memory of the application is reached by the kernel, which is fast for
// long blocks only.
std::optional<window_carrier> carrier_without_keys(const window_binding& binding)
{
    const layout& layout       = *binding.plan->source_layout();
    const std::uint64_t length = layout.packed_length();
    const bool is_shared       = length > 0 && binding.is_shared();
    const bool is_long         = length >= least_direct_length(is_shared);
    if (!is_shared) {
        return is_long && length > 0 && length / layout.blocks().count >= least_block_for_the_kernel
                   ? std::optional(window_carrier::direct)
                   : std::nullopt;
    }
    return is_long && touched_length(layout) < sparse * static_cast<double>(length) ? window_carrier::direct
                                                                                    : window_carrier::copies;
}

window_carrier with_part(window_carrier carrier)
{
    return window_registry::instance().has_part(carrier) ? carrier : window_carrier::undecided;
}

// The binding is that of the window, which has no keys any more, or not yet.
void copy_instead(decision& decided, const window_binding& binding, error reason)
{
    ucs_debug("the CPU copies the window of %zu bytes: %s", binding.plan->packed_length(), reason.message.c_str());
    decided.carrier    = with_part(carrier_without_keys(binding).value_or(window_carrier::copies));
    decided.keys       = nullptr;
    decided.may_change = reason.code != errc::unsupported && reason.code != errc::exceeds_limit;
    decided.why_copied = std::move(reason.message);
}

window_carrier without_devices(const context_view& view, const window_binding& binding)
{
    // In another context it may get a key, unless there are no cards: then shared memory is better used at once.
    const bool may_get_key = view.copying == nullptr && (!binding.is_shared() || was_device_opened());
    return may_get_key ? window_carrier::undecided : carrier_without_keys(binding).value_or(window_carrier::undecided);
}

} // namespace

window_keys* keys_in(const context_view& view)
{
    return view.with_keys.empty() ? nullptr : hardware_keys();
}

key_choice wanted_choice()
{
    return wanted_carrier() == window_carrier::keys ? key_choice::always : key_choice::by_cost;
}

result<decision> decide(const context_view& view, window_binding binding)
{
    UCXL_TRY(window_registry::instance().complete(binding));
    decision decided{
        .binding = std::move(binding), .carrier = wanted_carrier(), .keys = {}, .why_copied = {}, .view = view.number};
    if (decided.carrier == window_carrier::copies) {
        decided.carrier = with_part(decided.carrier);
        return decided;
    }
    if (window_keys* const keys = keys_in(view)) {
        auto planned = keys->plan(view.with_keys, content_of(decided.binding), wanted_choice());
        if (!planned) {
            copy_instead(decided, decided.binding, std::move(planned.error()));
            return decided;
        }
        decided.carrier = window_carrier::keys;
        decided.keys    = std::move(*planned);
        return decided;
    }
    decided.carrier = decided.carrier == window_carrier::keys ? window_carrier::undecided
                                                              : with_part(without_devices(view, decided.binding));
    return decided;
}

result<window*> create(decision& decided)
{
    auto& registry     = window_registry::instance();
    window* const made = UCXL_TRY(registry.place(std::move(decided.binding), decided.carrier));
    if (decided.keys == nullptr) {
        return made;
    }
    rollback undo([&] { registry.destroy(made); });
    const auto bound = hardware_keys()->bind(*decided.keys, made->address());
    if (!bound) {
        window_binding again = made->binding();
        copy_instead(decided, again, bound.error());
        return registry.place(std::move(again), decided.carrier);
    }
    decided.keys = nullptr;
    undo.cancel();
    return made;
}

result<void> make_keys(const context_view& view, const window& window, key_choice choice)
{
    window_keys* const keys = keys_in(view);
    if (keys == nullptr) {
        return {};
    }
    const auto planned = UCXL_TRY(keys->plan(view.with_keys, content_of(window), choice));
    return keys->bind(*planned, window.address());
}

window_carrier carrier_of(const cached_window& cached)
{
    const window_keys* const keys = hardware_keys();
    if (keys != nullptr && keys->has_key(cached.target->address())) {
        return window_carrier::keys;
    }
    // Without a key it may still get one, until a context has a memory handle of it.
    const auto carrier = cached.target->carrier();
    return !may_have_keys(carrier)    ? carrier
           : cached.had_memory_handle ? window_carrier::copies
                                      : window_carrier::undecided;
}

std::string why_no_key(const cached_window& cached)
{
    if (carrier_of(cached) == window_carrier::keys) {
        return {};
    }
    if (!cached.why_copied.empty()) {
        return cached.why_copied;
    }
    if (wanted_carrier() == window_carrier::copies) {
        return "UCX_LAYOUT_KEYS_WINDOWS is copies";
    }
    if (hardware_keys() == nullptr) {
        return why_no_hardware_keys();
    }
    return "no mlx5 device was asked for a key: the window has no memory handle in a context with one";
}

} // namespace ucxl
