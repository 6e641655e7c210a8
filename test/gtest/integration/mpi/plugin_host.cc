// Opens a plugin and calls one function of it. The plugin brings a library that this program knows nothing of, as it is
// with Python: plugin_host FILE local|deepbind|global FUNCTION
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

int main(int argc, char** argv)
{
    if (argc < 4) {
        std::fprintf(stderr, "usage: plugin_host FILE local|deepbind|global FUNCTION\n");
        return 2;
    }
    const int scope    = std::strcmp(argv[2], "global") == 0     ? RTLD_GLOBAL
                         : std::strcmp(argv[2], "deepbind") == 0 ? RTLD_LOCAL | RTLD_DEEPBIND
                                                                 : RTLD_LOCAL;
    void* const plugin = dlopen(argv[1], RTLD_NOW | scope);
    void* const found  = plugin == nullptr ? nullptr : dlsym(plugin, argv[3]);
    if (found == nullptr) {
        std::fprintf(stderr, "plugin_host: %s\n", dlerror());
        return 2;
    }
    return reinterpret_cast<int (*)(int*, char***)>(found)(&argc, &argv);
}
