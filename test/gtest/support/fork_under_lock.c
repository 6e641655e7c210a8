/* Preloaded: makes a program's first fork() happen in the worst moment there is with UCX in it. UCX's libraries start a
 * thread before main, whose calls of mmap, munmap and madvise go through UCX's memory hooks, which hold a lock
 * meanwhile. Here that thread takes the lock first of all, and has it until the fork is over. A process that never has
 * such a thread, or that does not fork within a second, goes on undisturbed.
 *
 * cc -shared -fPIC fork_under_lock.c -o fork_under_lock.so -ldl, and LD_PRELOAD=fork_under_lock.so
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NO_THREAD, STARTED, HAS_LOCK, FORKED };

static _Atomic int stage = NO_THREAD;

static struct {
    void* (*body)(void*);
    void* argument;
} first_thread;

static void call(const char* name)
{
    void (*const function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, name);
    if (function != NULL) {
        function();
    }
}

static void set_stage(int reached)
{
    atomic_store(&stage, reached);
    syscall(SYS_futex, &stage, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_until(int wanted)
{
    const struct timespec limit = {.tv_sec = 1};
    for (int now; (now = atomic_load(&stage)) < wanted;) {
        if (syscall(SYS_futex, &stage, FUTEX_WAIT, now, &limit, NULL, 0) != 0 && errno == ETIMEDOUT) {
            return;
        }
    }
}

static void* body_under_lock(void* unused)
{
    (void)unused;
    call("ucm_event_enter");
    set_stage(HAS_LOCK);
    wait_until(FORKED);
    call("ucm_event_leave");
    return first_thread.body(first_thread.argument);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument)
{
    int (*const original)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) =
        (int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))dlsym(RTLD_NEXT, "pthread_create");
    int none = NO_THREAD;
    if (!atomic_compare_exchange_strong(&stage, &none, STARTED)) {
        return original(thread, attributes, body, argument);
    }
    first_thread.body     = body;
    first_thread.argument = argument;
    return original(thread, attributes, body_under_lock, NULL);
}

pid_t fork(void)
{
    pid_t (*const original)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    if (atomic_load(&stage) != NO_THREAD) {
        wait_until(HAS_LOCK);
    }
    const pid_t child = original();
    if (child == 0) {
        unsetenv("LD_PRELOAD"); /* what the child executes is none of the subject */
    }
    set_stage(FORKED);
    return child;
}
