#include "key_options.h"

#include "ucs/sys/option_table.h"

namespace ucxl
{

namespace
{

constexpr key_options defaults{.enable       = 1,
                               .windows      = 0,
                               .same_host    = 0,
                               .spare        = 8,
                               .address      = 0,
                               .aliases      = 1024,
                               .export_spare = 16,
                               .export_max   = 65536,
                               .export_empty = 0,
                               .export_wait  = 0.1,
                               .export_idle  = 10};

const char* switch_names[] = {"n", "y", nullptr};
// In the order of the enumerations.
const char* carrier_names[]   = {"auto", "keys", "copies", nullptr};
const char* same_host_names[] = {"auto", "always", "never", nullptr};
const char* address_names[]   = {"auto", "umr", "ksm", nullptr};
const char* empty_names[]     = {"grow", "wait", "fresh", nullptr};

constexpr abi::option fields[] = {
    {"ENABLE", "y",
     "Whether windows and memory of the device get hardware keys under UCX's own mlx5 transports (y or n). With n,\n"
     "UCX's memory domains of RDMA devices stay exactly as they are, and the CPU copies windows.",
     offsetof(key_options, enable), abi::option_type::name, switch_names},
    {"WINDOWS", "auto",
     "Which windows network cards may reach by hardware keys: auto (where a card can have a key that atomic\n"
     "operations can use, and follows the layout about as fast as a CPU copies it), keys (wherever a card can have\n"
     "one) or copies (none: the CPU copies all windows).",
     offsetof(key_options, windows), abi::option_type::name, carrier_names},
    {"SAME_HOST", "auto",
     "Whether peers on the same host reach windows through the device: auto (unless lay_shm or lay_cma is in use),\n"
     "always or never. The process that uses the window decides.",
     offsetof(key_options, same_host), abi::option_type::name, same_host_names},
    {"SPARE", "8",
     "Memory keys to make in advance for windows, on each device with the first window. Making one takes long.",
     offsetof(key_options, spare), abi::option_type::unsigned_integer},
    {"ADDRESS", "auto",
     "How a region gets its virtual address: umr (the bind request moves the start of its key), ksm (a second key of\n"
     "fixed entities lies over it) or auto (umr where a loopback test finds that it works, otherwise ksm).",
     offsetof(key_options, address), abi::option_type::name, address_names},
    {"EXPORT_SPARE", "16",
     "Memory keys to keep ready for ucp_memh_pack with UCP_MEMH_PACK_FLAG_EXPORT, on each device from the first such\n"
     "call on: that many for buffers, and as many for windows. Making one takes long; a thread does it when half of\n"
     "them are in use. As many that came back rest before they show other memory.",
     offsetof(key_options, export_spare), abi::option_type::unsigned_integer},
    {"EXPORT_MAX", "65536",
     "Memory keys for export that exist at most, on each device, used and unused ones together. Beyond that a buffer\n"
     "gets a key from UCX itself, and a window is not exported.",
     offsetof(key_options, export_max), abi::option_type::unsigned_integer},
    {"EXPORT_EMPTY", "grow",
     "What an export does if no key is ready: grow (it makes one more at once, which stays), wait (until one comes\n"
     "back or a thread has made it, for UCX_LAYOUT_KEYS_EXPORT_WAIT), or fresh (a buffer gets a key from UCX itself,\n"
     "which ends with its registration; for a window the same as grow).",
     offsetof(key_options, export_empty), abi::option_type::name, empty_names},
    {"EXPORT_WAIT", "100ms",
     "How long an export waits for a key with UCX_LAYOUT_KEYS_EXPORT_EMPTY=wait. Then it goes\n"
     "on as with grow if a key rests, and otherwise as at UCX_LAYOUT_KEYS_EXPORT_MAX.",
     offsetof(key_options, export_wait), abi::option_type::time},
    {"EXPORT_IDLE", "10s",
     "Keys for export that nobody needed for that long end, down to UCX_LAYOUT_KEYS_EXPORT_SPARE of each size.",
     offsetof(key_options, export_idle), abi::option_type::time},
    {"ALIASES", "1024",
     "Aliases to keep for imported memory that nobody uses at present, on each device. Making one takes long, and an\n"
     "exporting process uses its keys again.",
     offsetof(key_options, aliases), abi::option_type::unsigned_integer},
};

constinit option_table<key_options> table("layout hardware keys", "LAYOUT_KEYS_", fields);

} // namespace

key_options read_key_options()
{
    return table.read_or(defaults);
}

void publish_key_options()
{
    table.add();
}

} // namespace ucxl
