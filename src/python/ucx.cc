#include "ucx.h"

#include <link.h>
#include <string_view>

#include <dlfcn.h>

namespace ucxl::python
{

namespace
{

// The file of a libucp that is loaded, or "". Names in wheels are mangled: libucp-1a2b3c.so.0.
std::string loaded_libucp()
{
    std::string found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            const std::string_view file = info->dlpi_name;
            const auto name             = file.substr(file.rfind('/') + 1);
            if (name.starts_with("libucp") && !name.starts_with("libucp_")) {
                *static_cast<std::string*>(to) = file;
                return 1;
            }
            return 0;
        },
        &found);
    return found;
}

void load_package()
{
    try {
        nb::module_::import_("libucx").attr("load_library")();
    } catch (nb::python_error& failure) {
        if (!failure.matches(PyExc_ImportError)) {
            throw;
        }
    }
}

// The library attaches itself to UCX when a call needs that, and only contexts that are made later have windows.
void attach_library()
{
    const std::byte shown{};
    const auto layout = checked("UCX", [] { return ucx_layout::layout::create_contig(1); });
    checked("UCX", [&] { return ucx_layout::window::map(nullptr, layout, &shown); });
}

template <typename Function>
void find(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
        raise(PyExc_RuntimeError, "UCX: {} is missing in its library", name);
    }
}

ucx_functions functions_of(const std::string& file, void* library)
{
    ucx_functions found{};
    found.file = file;
    find(library, "ucp_cleanup", found.cleanup);
    find(library, "ucp_worker_create", found.worker_create);
    find(library, "ucp_worker_destroy", found.worker_destroy);
    find(library, "ucp_worker_progress", found.worker_progress);
    find(library, "ucp_worker_get_address", found.worker_get_address);
    find(library, "ucp_worker_release_address", found.worker_release_address);
    find(library, "ucp_ep_create", found.ep_create);
    find(library, "ucp_ep_close_nbx", found.ep_close);
    find(library, "ucp_ep_flush_nbx", found.ep_flush);
    find(library, "ucp_ep_rkey_unpack", found.ep_rkey_unpack);
    find(library, "ucp_rkey_destroy", found.rkey_destroy);
    find(library, "ucp_rkey_pack", found.rkey_pack);
    find(library, "ucp_rkey_buffer_release", found.rkey_buffer_release);
    find(library, "ucp_tag_send_nbx", found.tag_send);
    find(library, "ucp_tag_send_sync_nbx", found.tag_send_sync);
    find(library, "ucp_tag_recv_nbx", found.tag_recv);
    find(library, "ucp_tag_recv_request_test", found.tag_recv_test);
    find(library, "ucp_put_nbx", found.put);
    find(library, "ucp_get_nbx", found.get);
    find(library, "ucp_request_check_status", found.request_status);
    find(library, "ucp_request_cancel", found.request_cancel);
    find(library, "ucp_request_free", found.request_free);
    return found;
}

} // namespace

const ucx_functions& ucx()
{
    static const ucx_functions* found = nullptr; // never freed: UCX stays loaded
    if (found == nullptr) {
        std::string file = loaded_libucp();
        if (file.empty()) {
            load_package();
            file = loaded_libucp();
        }
        file                = file.empty() ? "libucp.so.0" : file;
        void* const library = dlopen(file.c_str(), RTLD_NOW);
        if (library == nullptr) {
            raise(PyExc_RuntimeError, "UCX is not installed: {}", dlerror());
        }
        const ucx_functions functions = functions_of(file, library);
        attach_library();
        found = new ucx_functions(functions);
    }
    return *found;
}

} // namespace ucxl::python
