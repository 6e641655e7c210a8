// The result of lowering a layout: the memory keys that, bound in this order, let the device see the bytes of the
// layout as one contiguous range. Pure data: no keys exist yet, and no addresses are known.
//
// Every key has an address space of its own, which begins at 0 and is `length` bytes long. Its entries refer to memory
// of a source (an offset from a base address that comes later) or to a range of an earlier key of the plan. The last
// key is the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ucxl::mlx5
{

enum class key_kind : std::uint8_t {
    klm,    // entries in sequence
    ksm,    // the same; all entries have 2^log_entity_size bytes, only the last may be shorter
    repeat, // all entries once per turn, for repeat_count turns; each entry advances by its stride per turn
};

struct plan_entry {
    bool nested          = false; // `target` is an index into keys, otherwise a source
    std::uint32_t target = 0;
    std::int64_t offset  = 0; // bytes, from the base address of the source or the start of the key
    std::uint64_t length = 0; // bytes; of a repeat entry: in one turn
    std::uint64_t stride = 0; // bytes, of a repeat entry

    bool operator==(const plan_entry&) const = default;
};

struct plan_key {
    key_kind kind                = key_kind::klm;
    std::uint8_t log_entity_size = 0;
    std::uint8_t depth           = 1; // keys on the longest path down, including this one
    std::uint32_t repeat_count   = 1;
    std::uint32_t octowords      = 0; // of translation, padded as the device requires
    std::uint64_t length         = 0;
    std::size_t first_entry      = 0; // of entries [first_entry, first_entry + num_entries)
    std::size_t num_entries      = 0;
};

// The cost of a plan for device and CPU, to compare plans and to show to people.
struct plan_cost {
    std::size_t keys           = 0;
    std::size_t repeat_blocks  = 0; // of the keys
    std::size_t octowords      = 0; // all translation entries written by binds
    std::size_t inline_binds   = 0; // bind requests that carry their entries
    std::size_t pointer_binds  = 0; // bind requests whose entries the device fetches
    unsigned depth             = 0;
    std::uint64_t translations = 0; // entries that the device walks, on all levels, when the whole layout is moved once
};

// Why a loop did not become a repeat block: the first loop for each reason.
struct misfit {
    enum class reason : std::uint8_t {
        not_supported,
        turns,
        entries,
        stride, // also a negative stride
        length,
    };

    misfit::reason cause;
    std::int64_t value;
    std::uint64_t limit;
};

struct plan {
    std::vector<plan_key> keys; // children precede parents
    std::vector<plan_entry> entries;
    std::vector<misfit> misfits;
    plan_cost cost;

    const plan_key& root() const { return keys.back(); }
};

// The room of a window's key, which is made before its layout is known.
inline constexpr std::uint32_t window_key_octowords = 64;

// The limits of a device. The defaults come from published dumps of ConnectX-6 and BlueField-3.
struct device_limits {
    std::uint32_t max_list_entries   = 65536; // 2^log_max_klm_list_size
    std::uint32_t max_inline_entries = 20;    // of one UMR work request
    std::uint32_t max_repeat_entries = 1024;  // in one repeat block, without its header
    unsigned max_nesting             = 4;     // max_indirection: keys on the path from a request to memory
    bool repeat_blocks               = true;
    bool ksm                     = false; // keys of fixed entity size; a key is created as one, not only bound as one
    unsigned min_log_entity_size = 12;
    unsigned max_log_entity_size = 31;

    // Field widths, the same on all devices.
    std::uint64_t max_list_bytes    = std::uint64_t{1} << 31; // of one KLM
    std::uint64_t max_repeat_bytes  = 65535;                  // of one entry in one turn
    std::uint64_t max_repeat_stride = 65535;
    std::uint32_t max_repeat_count  = std::numeric_limits<std::uint32_t>::max();

    // The room of the last key, which the caller may have made before it knew the layout.
    std::uint32_t max_root_octowords = std::numeric_limits<std::uint32_t>::max();

    // The limit that the caller sets.
    std::size_t max_entries = std::size_t{1} << 22; // of all keys of a plan
    std::size_t max_keys    = 4096;

    bool operator==(const device_limits&) const = default;
};

} // namespace ucxl::mlx5
