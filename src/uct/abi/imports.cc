#include "imports.h"

#include <dlfcn.h>
#include <ucs/type/status.h>

// Every function of UCX that the code calls by its name. Data, functions that not every release has, and functions
// whose address UCX gets are looked up with find_symbol().
#define UCXL_FOR_EACH_IMPORT(DO)                                                                                       \
    DO(ucp_dt_create_generic)                                                                                          \
    DO(ucp_dt_destroy)                                                                                                 \
    DO(ucp_mem_map)                                                                                                    \
    DO(ucp_mem_unmap)                                                                                                  \
    DO(ucs_class_call_cleanup_chain)                                                                                   \
    DO(ucs_config_parser_fill_opts)                                                                                    \
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

#if defined(__x86_64__)
#define UCXL_JUMP(name)                                                                                                \
    "endbr64\n\t"                                                                                                      \
    "jmp *ucxl_pointer_" #name "(%rip)\n\t"
#elif defined(__aarch64__)
#define UCXL_JUMP(name)                                                                                                \
    "hint #34\n\t" /* bti c */                                                                                         \
    "adrp x16, ucxl_pointer_" #name "\n\t"                                                                             \
    "ldr x16, [x16, :lo12:ucxl_pointer_" #name "]\n\t"                                                                 \
    "br x16\n\t"
#else
#error "write the jump for this processor"
#endif

#define UCXL_TRAMPOLINE(name)                                                                                          \
    asm(".pushsection .text." #name ",\"ax\",%progbits\n\t"                                                            \
        ".balign 16\n\t"                                                                                               \
        ".globl " #name "\n\t"                                                                                         \
        ".hidden " #name "\n\t"                                                                                        \
        ".type " #name ", %function\n" #name ":\n\t" UCXL_JUMP(name) ".size " #name ", . - " #name "\n\t"              \
                                                                     ".popsection");

UCXL_FOR_EACH_IMPORT(UCXL_TRAMPOLINE)

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
