#include "imports.h"

#include "sys/trampoline.h"

#include <dlfcn.h>
#include <ucs/type/status.h>

// Jumps in assembly, not a table of pointers with inline wrappers, because
//   * UCX's headers declare these names as functions that are not inline, so wrappers would need other names, and
//     four of the functions take variable arguments, which no C++ function can pass on;
//   * tests, fuzz targets and benchmarks link parts of the library with UCX itself. The same calls then reach it
//     directly, and nothing has to be bound before the first one;
//   * a function that is not bound has to return an error whatever its type is. A call by a pointer of another type is
//     undefined, and sanitizers report it.
// The jump of each processor is in sys/trampoline.h, which MPI's hundreds of functions need anyway.

// Every function of UCX that the code calls by its name. Data, functions that not every release has, and functions
// whose address UCX gets are looked up with find_symbol().
#define UCXL_FOR_EACH_IMPORT(DO)                                                                                       \
    DO(ucp_cleanup)                                                                                                    \
    DO(ucp_config_modify)                                                                                              \
    DO(ucp_config_print)                                                                                               \
    DO(ucp_config_read)                                                                                                \
    DO(ucp_config_release)                                                                                             \
    DO(ucp_context_query)                                                                                              \
    DO(ucp_dt_create_generic)                                                                                          \
    DO(ucp_dt_destroy)                                                                                                 \
    DO(ucp_mem_map)                                                                                                    \
    DO(ucp_mem_unmap)                                                                                                  \
    DO(ucs_class_call_cleanup_chain)                                                                                   \
    DO(ucs_config_parser_fill_opts)                                                                                    \
    DO(ucs_config_parser_release_opts)                                                                                 \
    DO(ucs_log_dispatch)                                                                                               \
    DO(ucs_string_buffer_appendf)                                                                                      \
    DO(ucs_vfs_obj_add_dir)                                                                                            \
    DO(ucs_vfs_obj_add_ro_file)                                                                                        \
    DO(ucs_vfs_obj_remove)                                                                                             \
    DO(uct_base_ep_t_init)                                                                                             \
    DO(uct_base_iface_query)                                                                                           \
    DO(uct_base_iface_t_init)                                                                                          \
    DO(uct_component_register)                                                                                         \
    DO(uct_single_device_resource)                                                                                     \
    DO(uct_tl_register)

namespace
{

using any_function = ucs_status_t (*)();

ucs_status_t unbound()
{
    return UCS_ERR_NO_DEVICE;
}

} // namespace

#define UCXL_POINTER(name)                                                                                             \
    [[gnu::visibility("hidden"), gnu::used]] constinit any_function ucxl_pointer_##name = unbound;

extern "C" {
UCXL_FOR_EACH_IMPORT(UCXL_POINTER)
}

#define UCXL_IMPORT(name) UCXL_TRAMPOLINE(name, "ucxl_pointer_" #name, UCXL_HIDDEN)

UCXL_FOR_EACH_IMPORT(UCXL_IMPORT)

namespace ucxl::abi
{

namespace
{

struct import {
    const char* name;
    any_function* pointer;
};

#define UCXL_ROW(name) {#name, &ucxl_pointer_##name},

constexpr import imports[] = {UCXL_FOR_EACH_IMPORT(UCXL_ROW)};

} // namespace

void bind_imports(void* library)
{
    for (const auto& import : imports) {
        if (void* const found = dlsym(library, import.name)) {
            *import.pointer = reinterpret_cast<any_function>(found);
        }
    }
}

} // namespace ucxl::abi
