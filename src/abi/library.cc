#include "library.h"

#include "sys/search_order.h"

#include <algorithm>
#include <string_view>

#include <dlfcn.h>

namespace ucxl::abi
{

namespace
{

constexpr const char* of_libucp = "ucp_get_version";
constexpr const char* of_libuct = "uct_component_register";

// Does not load anything. Null if the object is not loaded.
void* open_loaded(const char* file)
{
    return dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
}

std::string joined(const std::vector<ucx_library>& libraries)
{
    std::string text;
    for (const auto& library : libraries) {
        text += (text.empty() ? "" : " and ") + library.file;
    }
    return text;
}

const ucx_library* library_at(const std::vector<ucx_library>& libraries, const void* start)
{
    const auto found = std::ranges::find(libraries, start, &ucx_library::start);
    return start != nullptr && found != libraries.end() ? &*found : nullptr;
}

} // namespace

std::vector<ucx_library> libraries_with(const char* symbol, const char* part)
{
    std::vector<ucx_library> found;
    const auto files = loaded_files();
    for (const auto& file : files) {
        const bool is_program       = file.empty();
        const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
        if (!is_program && name.find(part) == name.npos) {
            continue;
        }
        void* const handle = open_loaded(is_program ? nullptr : file.c_str());
        void* const at     = handle != nullptr ? dlsym(handle, symbol) : nullptr;
        // dlsym also searches what the object needs, and for the program all of the global scope.
        const std::string where = file_of(at);
        const bool is_its_own   = is_program ? std::ranges::find(files, where) == files.end() : where == file;
        if (at != nullptr && is_its_own) {
            found.push_back({handle, where, start_of(at)});
        }
    }
    return found;
}

std::vector<ucx_library> loaded_libucps()
{
    return libraries_with(of_libucp, "libucp");
}

result<ucx_library> choose_library(const void* caller)
{
    const auto libraries = loaded_libucps();
    if (libraries.empty()) {
        return fail(errc::no_device, "no UCX is loaded in this process: link the program with libucp");
    }
    if (libraries.size() == 1) {
        return libraries.front();
    }
    if (const auto* const reached = library_at(libraries, start_of(reached_from(caller, of_libucp)))) {
        return *reached;
    }
    // A caller inside UCX reaches libuct or libucs, and only one libucp uses these.
    if (const void* const inside = start_of(caller)) {
        for (const auto& library : libraries) {
            for (const char* const symbol : {of_libuct, "ucs_log_dispatch"}) {
                if (start_of(dlsym(library.handle, symbol)) == inside) {
                    return library;
                }
            }
        }
    }
    if (const auto* const global = library_at(libraries, start_of(dlsym(RTLD_DEFAULT, of_libucp)))) {
        return *global;
    }
    return fail(errc::unsupported, "this process has several UCXs, and ucx-layout cannot tell which one is meant: " +
                                       joined(libraries) + ". Load one of them only");
}

std::string libuct_alone()
{
    const auto libraries = libraries_with(of_libuct, "libuct");
    return libraries.empty() ? "" : libraries.front().file;
}

void* next_function(const char* name, const void* own, const void* caller)
{
    const void* const here = start_of(own);
    void* found            = reached_from(caller, name);
    if (found == nullptr || start_of(found) == here) {
        found = dlsym(RTLD_NEXT, name);
    }
    if (found == nullptr || start_of(found) == here) {
        const auto library = choose_library(caller);
        found              = library ? dlsym(library->handle, name) : nullptr;
    }
    return start_of(found) == here ? nullptr : found;
}

} // namespace ucxl::abi
