/* A libucp of the release FAKE_MINOR with the symbols and objects that ucx-layout looks at, and nothing behind them. */
#include <stddef.h>
#include <stdio.h>

#ifndef FAKE_STATS
#define FAKE_STATS 0
#endif

/* The beginning of ucs_class_t. */
struct fake_class {
    const char *name;
    size_t size;
    void *superclass;
    void *init;
    void *cleanup;
};

struct fake_class uct_base_iface_t_class = {.name = "fake", .size = 1280 + FAKE_STATS};
struct fake_class uct_base_ep_t_class    = {.name = "fake", .size = 8 + FAKE_STATS};

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
    *major   = 1;
    *minor   = FAKE_MINOR;
    *release = 7;
}

int ucp_init_version(unsigned major, unsigned minor, const void *params, const void *config, void **context)
{
    (void)major, (void)minor, (void)params, (void)config;
    *context = NULL;
    puts("the program goes on");
    return 0;
}
