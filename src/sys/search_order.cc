#include "search_order.h"

#include <dlfcn.h>
#include <link.h>

namespace ucxl
{

std::vector<std::string> loaded_files()
{
    std::vector<std::string> files;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t /*size*/, void* names) {
            static_cast<std::vector<std::string>*>(names)->emplace_back(object->dlpi_name);
            return 0;
        },
        &files);
    return files;
}

std::string file_of(const void* address)
{
    Dl_info object{};
    return address != nullptr && dladdr(address, &object) != 0 && object.dli_fname != nullptr ? object.dli_fname : "";
}

const void* start_of(const void* address)
{
    Dl_info object{};
    return address != nullptr && dladdr(address, &object) != 0 ? object.dli_fbase : nullptr;
}

void* reached_from(const void* caller, const char* symbol)
{
    Dl_info info{};
    link_map* object = nullptr;
    if (caller == nullptr || dladdr1(caller, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0) {
        return nullptr;
    }
    // The program has no name.
    const char* const name = object->l_name[0] == '\0' ? nullptr : object->l_name;
    void* const handle     = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        return nullptr;
    }
    void* const found = dlsym(handle, symbol);
    dlclose(handle); // the caller is running, so it stays
    return found;
}

void* function_behind(const void* own, const char* symbol, const void* caller)
{
    if (void* const next = dlsym(RTLD_NEXT, symbol)) {
        return next;
    }
    void* const found = reached_from(caller, symbol);
    return start_of(found) == start_of(own) ? nullptr : found;
}

} // namespace ucxl
