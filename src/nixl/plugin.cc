// What NIXL finds in libplugin_UCX_LAYOUT.so.

#include "engine.h"

#include <new>

namespace
{

constexpr const char* plugin_name = "UCX_LAYOUT";

nixlBackendEngine* create_engine(const nixlBackendInitParams* params)
{
    try {
        return new ucxl::nixl::engine(params);
    } catch (const std::exception&) {
        return nullptr;
    }
}

void destroy_engine(nixlBackendEngine* engine)
{
    delete engine;
}

} // namespace

extern "C" NIXL_PLUGIN_EXPORT nixlBackendPlugin* nixl_plugin_init()
{
    static nixlBackendPlugin plugin{.api_version         = NIXL_PLUGIN_API_VERSION,
                                    .create_engine       = create_engine,
                                    .destroy_engine      = destroy_engine,
                                    .get_plugin_name     = [] { return plugin_name; },
                                    .get_plugin_version  = [] { return ucp_layout_get_version_string(); },
                                    .get_backend_options = [] { return ucxl::nixl::engine::default_options(); },
                                    .get_backend_mems    = [] { return nixl_mem_list_t{DRAM_SEG}; }};
    return &plugin;
}

extern "C" NIXL_PLUGIN_EXPORT void nixl_plugin_fini()
{
}
