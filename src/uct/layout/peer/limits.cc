#include "limits.h"

#include "ucs/sys/option_table.h"

namespace ucxl
{

namespace
{

const char* yes_or_no[] = {"n", "y", nullptr};

constexpr abi::option fields[] = {
    {"IDLE_WINDOWS", "64",
     "Windows of peers that stay mapped after their last remote key, so that the next key of the same window is cheap.",
     offsetof(lay_shm_limit_options, idle_windows), abi::option_type::unsigned_integer},
    {"IDLE_SIZE", "4g",
     "Bytes of memory of these windows, and of what is kept to work in it. Memory that its owner releases stays\n"
     "allocated while it is mapped.",
     offsetof(lay_shm_limit_options, idle_bytes), abi::option_type::memory_units},
    {"MAP_LIMIT", "16t", "Bytes of memory of peers that may be mapped at a time. Keys beyond the limit are refused.",
     offsetof(lay_shm_limit_options, map_bytes), abi::option_type::memory_units},
    {"MAP_REGIONS", "16384",
     "Regions of peers that may be mapped at a time. Each takes one of the system's mappings of a process\n"
     "(vm.max_map_count), which malloc() and new threads need, too. Keys beyond the limit are refused.",
     offsetof(lay_shm_limit_options, map_regions), abi::option_type::unsigned_integer},
    {"MAP_UNSEALED", "y",
     "Whether to map memory of peers whose file may lose pages, such as POSIX shared memory. This process then has a\n"
     "handler of SIGBUS, because touching what is gone is a bus error. If not, the kernel copies long blocks of it.",
     offsetof(lay_shm_limit_options, maps_unsealed), abi::option_type::name, yes_or_no},
    {"SHARE_MIN", "128k",
     "Least length of an operation of which a peer that makes progress copies a part. \"inf\": none does.",
     offsetof(lay_shm_limit_options, min_shared), abi::option_type::memory_units}};

constexpr lay_shm_limit_options defaults{.idle_windows  = 64,
                                         .idle_bytes    = std::size_t{4} << 30,
                                         .map_bytes     = std::size_t{16} << 40,
                                         .map_regions   = 16384,
                                         .maps_unsealed = 1,
                                         .min_shared    = 128 << 10};

constinit option_table<lay_shm_limit_options> table("lay_shm mappings", "LAY_SHM_", fields);

} // namespace

const lay_shm_limit_options& lay_shm_limits()
{
    static const lay_shm_limit_options limits = table.read_or(defaults);
    return limits;
}

void register_lay_shm_config()
{
    table.add();
    static_cast<void>(lay_shm_limits()); // read now, because ucp_init reports variables that nobody has read as unused
}

} // namespace ucxl
