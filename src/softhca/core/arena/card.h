// What a card reports in QUERY_HCA_CAP about its memory keys and queues, where cards differ, and what follows from it:
// the model refuses what a card with these capabilities refuses. softhca-run --profile chooses one; docs/softhca.md
// says for each value where it is from.
//
// Sources: [cap] the vendor's text for each capability (mstflint, hca_cap_table.adb), [dump] the capabilities of a real
// ConnectX-6 Dx (README of mlx5ctl), [linux] drivers/infiniband/hw/mlx5, [ucx] src/uct/ib/mlx5.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "limits.h"
#include "prm/hca_cap.h"

namespace ucxl::softhca
{

struct card {
    // The fence that a UMR needs towards the key changes before it. [cap] "required fence type for UMR WQEs"
    prm::umr_fence_kind umr_fence = prm::umr_fence_kind::small;
    // Local use of the keys inside a key is checked with their local rights, as long as a peer came by the first one.
    // Without it peers need remote rights at every level. [cap]
    bool imaicl = true;
    // Keys may be made of repeat blocks. [cap] repeated_block_disabled, inverted
    bool repeat_blocks = true;
    // A UMR may change the atomic right. [linux] umr_check_mkey_mask refuses it where umr_modify_atomic_disabled is set
    bool umr_modifies_atomic = true;
    // UMRs may take their entries from memory, by the reserved key as well. [cap] umr_ptr_rlkey
    bool umr_ptr_rlkey = true;
    // Keys may be made of entries of one length (KSM). [cap]; [ucx] makes none of them elsewhere
    bool fixed_buffer_size   = true;
    bool device_memory       = true;
    bool atomics             = true;
    bool relaxed_ordering    = true;               // keys may allow writes to pass writes
    bool relaxed_only        = false;              // and must. [cap] mkc_order_write_after_write_ro_only
    bool atomic_rate_pa      = true;               // atomics lock physical addresses, not those of the key. [cap]
    bool exports             = true;               // says that keys may be opened to other functions
    bool refuses_exports     = false;              // but does not open them
    bool high_keys           = false;              // gives keys indexes from 0xff0000 on. [dump] log_max_mkey: 24
    std::uint16_t dc_wqe     = max_send_wqe_bytes; // bytes of a WQE of a DCI at most. [dump] max_wqe_sz_sq_dc: 256
    std::uint8_t indirection = 4;                  // indirect keys above a direct one, at most 4 here
    // What no source says of a card, for those who want to see who notices it.
    std::uint16_t list_alignment = 2048;  // of entries in memory, in bytes; see key_work.cc
    bool takes_unset_atomic_bit  = false; // a UMR may name the atomic right if it leaves it as it is
    bool ignores_fences          = false; // of requests behind reads and atomics, in the adversarial order
    bool counts_aliases          = false; // an alias of a key is one level of keys more
    bool ignores_variants        = false; // of keys: a number that a key had before is taken, too
    bool ignores_routes          = false; // DC targets take requests whose route header has another GID
    bool resets_sound_streams    = false; // of DCIs, which are not in error
    bool needs_relaxed_keys      = false; // refuses keys over keys without relaxed order, where relaxed_only is set
};

// Null for a name that is not there.
std::optional<card> card_named(std::string_view name);

// "none, cx5, ..."
std::string_view card_names();

// Sets one capability, of those above. False when there is none of that name, or not with that value.
bool set_capability(card& changed, std::string_view name, unsigned value);

} // namespace ucxl::softhca
