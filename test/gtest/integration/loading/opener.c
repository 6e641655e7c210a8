/* A program like Python: it knows nothing of UCX, and opens libraries that do, privately, in the order of its
 * arguments. Ends with 0 if windows work in the last one; the others only initialise their UCX. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int result = 3;
    for (int i = 1; i < argc; ++i) {
        void *library        = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        int (*try_it)(void)  = library != NULL ? (int (*)(void))dlsym(library, "try_windows") : NULL;
        if (try_it == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 4;
        }
        result = try_it();
    }
    return result;
}
