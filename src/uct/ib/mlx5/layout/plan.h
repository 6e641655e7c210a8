// What lowering makes of a layout: the memory keys that, bound one after the other, let the device see the layout's
// bytes as one contiguous range. Pure data: no keys exist yet and no addresses are known.
//
// Every key has an address space of its own that begins at 0 and is `length` bytes long. Its entries refer to memory of
// a source (an offset from the base address that will be given) or to a range of a key earlier in the plan. The last
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
    klm,    // entries one after the other
    ksm,    // the same, all of 2^log_entity_size bytes but the last, which may be shorter
    repeat, // all entries once per turn, repeat_count turns; each advances by its stride from turn to turn
};

struct plan_entry {
    bool nested          = false; // `target` is an index into keys, else a source
    std::uint32_t target = 0;
    std::int64_t offset  = 0; // bytes, from the base address of the source or the start of the key
    std::uint64_t length = 0; // bytes; of a repeat entry: in one turn
    std::uint64_t stride = 0; // bytes, of a repeat entry

    bool operator==(const plan_entry&) const = default;
};

struct plan_key {
    key_kind kind                = key_kind::klm;
    std::uint8_t log_entity_size = 0;
    std::uint8_t depth           = 1; // keys on the longest way down, this one included
    std::uint32_t repeat_count   = 1;
    std::uint32_t octowords      = 0; // of translation, padded as the device wants them
    std::uint64_t length         = 0;
    std::size_t first_entry      = 0; // of entries [first_entry, first_entry + num_entries)
    std::size_t num_entries      = 0;
};

// What the plan asks of the device and of the CPU, for choosing between plans and for people.
struct plan_cost {
    std::size_t keys           = 0;
    std::size_t repeat_blocks  = 0; // of the keys
    std::size_t octowords      = 0; // all translation entries written by binds
    std::size_t inline_binds   = 0; // bind requests that carry their entries
    std::size_t pointer_binds  = 0; // bind requests whose entries the device fetches
    unsigned depth             = 0;
    std::uint64_t translations = 0; // entries the device walks when the whole layout is moved once, on all levels
};

// Why a loop did not become a repeat block, the first loop of each reason.
struct misfit {
    enum class reason : std::uint8_t {
        not_supported,
        turns,
        entries,
        stride, // also a negative one
        length,
    };

    misfit::reason why;
    std::int64_t value;
    std::uint64_t limit;
};

struct plan {
    std::vector<plan_key> keys; // children before parents
    std::vector<plan_entry> entries;
    std::vector<misfit> misfits;
    plan_cost cost;

    const plan_key& root() const { return keys.back(); }
};

// What a device can hold. Defaults: what published dumps of ConnectX-6 and BlueField-3 say.
struct device_limits {
    std::uint32_t max_list_entries   = 65536; // 2^log_max_klm_list_size
    std::uint32_t max_inline_entries = 20;    // of one UMR work request
    std::uint32_t max_repeat_entries = 1024;  // in one repeat block, header not counted
    unsigned max_nesting             = 4;     // max_indirection: keys on the way from a request to memory
    bool repeat_blocks               = true;
    bool ksm                         = false; // keys of fixed entity size; they are made so, not only bound so
    unsigned min_log_entity_size     = 12;
    unsigned max_log_entity_size     = 31;

    // Field widths, the same on all devices.
    std::uint64_t max_list_bytes    = std::uint64_t{1} << 31; // of one KLM
    std::uint64_t max_repeat_bytes  = 65535;                  // of one entry in one turn
    std::uint64_t max_repeat_stride = 65535;
    std::uint32_t max_repeat_count  = std::numeric_limits<std::uint32_t>::max();

    // Room of the last key alone, which the caller may have made before the layout was known.
    std::uint32_t max_root_octowords = std::numeric_limits<std::uint32_t>::max();

    // What the caller is ready to spend.
    std::size_t max_entries = std::size_t{1} << 22; // of all keys of a plan
    std::size_t max_keys    = 4096;
};

} // namespace ucxl::mlx5
