#include "limits.h"

#include <ucs/config/parser.h>

#include <mutex>

namespace ucxl
{

namespace
{

ucs_config_field_t fields[] = {
    {"IDLE_WINDOWS", "64",
     "Windows of peers kept mapped after their last remote key, so that the next key of the same window is cheap.",
     offsetof(lay_shm_limit_options, idle_windows), UCS_CONFIG_TYPE_UINT},
    {"IDLE_SIZE", "4g", "Bytes of memory under these windows. Kept memory that its owner releases stays allocated.",
     offsetof(lay_shm_limit_options, idle_bytes), UCS_CONFIG_TYPE_MEMUNITS},
    {"MAP_LIMIT", "16t", "Bytes of memory of peers that may be mapped at a time; keys beyond it are refused.",
     offsetof(lay_shm_limit_options, map_bytes), UCS_CONFIG_TYPE_MEMUNITS},
    {}};

constinit ucs_config_global_list_entry_t table = {.name   = "lay_shm mappings",
                                                  .prefix = "LAY_SHM_",
                                                  .table  = fields,
                                                  .size   = sizeof(lay_shm_limit_options),
                                                  .list   = {},
                                                  .flags  = 0};

} // namespace

const lay_shm_limit_options& lay_shm_limits()
{
    static const lay_shm_limit_options limits = [] {
        lay_shm_limit_options read{};
        if (ucs_config_parser_fill_opts(&read, &table, UCS_DEFAULT_ENV_PREFIX, 0) != UCS_OK) {
            return lay_shm_limit_options{
                .idle_windows = 64, .idle_bytes = std::size_t{4} << 30, .map_bytes = std::size_t{16} << 40};
        }
        ucs_config_parser_release_opts(&read, fields);
        return read;
    }();
    return limits;
}

void register_lay_shm_config()
{
    static std::once_flag once;
    std::call_once(once, [] {
        ucs_list_add_tail(&ucs_config_global_list, &table.list);
        (void)lay_shm_limits(); // read now: ucp_init calls variables nobody has read unused
    });
}

} // namespace ucxl
