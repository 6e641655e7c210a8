#include "card.h"

#include <array>
#include <bit>
#include <utility>

namespace ucxl::softhca
{

namespace
{

struct named_card {
    std::string_view name;
    card capabilities;
};

// [dump] has all of the first one but exports, which it does not show: no.
constexpr card connectx_6dx{.exports = false, .dc_wqe = 256};

// No dump of one was found. It has neither relaxed order ([ucx] knows it from ConnectX-5 on, depending on the firmware)
// nor locks by physical address, so that both other cases are somewhere.
constexpr card connectx_5{.relaxed_ordering = false, .atomic_rate_pa = false, .exports = false, .dc_wqe = 256};

// [ucx] issue on XGVMI: it says that it opens keys and refuses with syndrome 0x172DF6. The fence is the other one that
// [linux] handles, and the order is the stricter of two that [cap] describes.
constexpr card connectx_7{
    .umr_fence = prm::umr_fence_kind::strong, .relaxed_only = true, .refuses_exports = true, .dc_wqe = 256};

// [ucx] opens keys there and makes aliases.
constexpr card bluefield_3{.dc_wqe = 256};

// A virtual function from which its manager has withheld what [cap] calls optional.
constexpr card virtual_function{.umr_fence           = prm::umr_fence_kind::strong,
                                .imaicl              = false,
                                .repeat_blocks       = false,
                                .umr_modifies_atomic = false,
                                .umr_ptr_rlkey       = false,
                                .device_memory       = false,
                                .relaxed_ordering    = false,
                                .atomic_rate_pa      = false,
                                .exports             = false,
                                .dc_wqe              = 256,
                                .indirection         = 2};

constexpr std::array cards{
    named_card{"none", {}},        named_card{"cx5", connectx_5},  named_card{"cx6dx", connectx_6dx},
    named_card{"cx7", connectx_7}, named_card{"bf3", bluefield_3}, named_card{"vf", virtual_function}};

constexpr std::array flags{std::pair{std::string_view("imaicl"), &card::imaicl},
                           std::pair{std::string_view("repeat_blocks"), &card::repeat_blocks},
                           std::pair{std::string_view("umr_modifies_atomic"), &card::umr_modifies_atomic},
                           std::pair{std::string_view("umr_ptr_rlkey"), &card::umr_ptr_rlkey},
                           std::pair{std::string_view("fixed_buffer_size"), &card::fixed_buffer_size},
                           std::pair{std::string_view("device_memory"), &card::device_memory},
                           std::pair{std::string_view("atomics"), &card::atomics},
                           std::pair{std::string_view("relaxed_ordering"), &card::relaxed_ordering},
                           std::pair{std::string_view("relaxed_only"), &card::relaxed_only},
                           std::pair{std::string_view("atomic_rate_pa"), &card::atomic_rate_pa},
                           std::pair{std::string_view("exports"), &card::exports},
                           std::pair{std::string_view("refuses_exports"), &card::refuses_exports},
                           std::pair{std::string_view("high_keys"), &card::high_keys},
                           std::pair{std::string_view("takes_unset_atomic_bit"), &card::takes_unset_atomic_bit},
                           std::pair{std::string_view("ignores_fences"), &card::ignores_fences},
                           std::pair{std::string_view("counts_aliases"), &card::counts_aliases},
                           std::pair{std::string_view("ignores_variants"), &card::ignores_variants},
                           std::pair{std::string_view("ignores_routes"), &card::ignores_routes},
                           std::pair{std::string_view("resets_sound_streams"), &card::resets_sound_streams},
                           std::pair{std::string_view("needs_relaxed_keys"), &card::needs_relaxed_keys}};

} // namespace

std::optional<card> card_named(std::string_view name)
{
    for (const named_card& each : cards) {
        if (each.name == name) {
            return each.capabilities;
        }
    }
    return std::nullopt;
}

std::string_view card_names()
{
    return "none, cx5, cx6dx, cx7, bf3 or vf";
}

bool set_capability(card& changed, std::string_view name, unsigned value)
{
    if (name == "umr_fence" && value <= std::to_underlying(prm::umr_fence_kind::none)) {
        changed.umr_fence = static_cast<prm::umr_fence_kind>(value);
        return true;
    }
    if (name == "dc_wqe" && value >= 64 && value <= max_send_wqe_bytes) {
        changed.dc_wqe = static_cast<std::uint16_t>(value);
        return true;
    }
    if (name == "indirection" && value >= 1 && value <= 4) {
        changed.indirection = static_cast<std::uint8_t>(value);
        return true;
    }
    if (name == "list_alignment" && value >= 64 && value <= 4096 && std::has_single_bit(value)) {
        changed.list_alignment = static_cast<std::uint16_t>(value);
        return true;
    }
    for (const auto& [flag, place] : flags) {
        if (flag == name && value <= 1) {
            changed.*place = value == 1;
            return true;
        }
    }
    return false;
}

} // namespace ucxl::softhca
