// The C library's own functions, below those that libsofthca.so defines. The shim calls interposed functions only
// through this table, so that it never calls itself.
#pragma once

#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace ucxl::softhca
{

struct libc_functions {
    // files
    int (*open)(const char*, int, ...);
    int (*openat)(int, const char*, int, ...);
    FILE* (*fopen)(const char*, const char*);
    int (*access)(const char*, int);
    int (*faccessat)(int, const char*, int, int);
    int (*stat)(const char*, struct stat*);
    int (*lstat)(const char*, struct stat*);
    int (*fstat)(int, struct stat*);
    int (*fstatat)(int, const char*, struct stat*, int);
    int (*statx)(int, const char*, int, unsigned, struct statx*);
    ssize_t (*readlink)(const char*, char*, size_t);
    ssize_t (*readlinkat)(int, const char*, char*, size_t);
    char* (*realpath)(const char*, char*);
    DIR* (*opendir)(const char*);
    DIR* (*fdopendir)(int);
    dirent* (*readdir)(DIR*);
    int (*closedir)(DIR*);
    int (*dirfd)(DIR*);
    void (*rewinddir)(DIR*);
    long (*telldir)(DIR*);
    void (*seekdir)(DIR*, long);
    int (*scandir)(const char*, dirent***, int (*)(const dirent*), int (*)(const dirent**, const dirent**));
    int (*scandir64)(const char*, dirent64***, int (*)(const dirent64*), int (*)(const dirent64**, const dirent64**));
    // descriptors
    int (*ioctl)(int, unsigned long, ...);
    ssize_t (*read)(int, void*, size_t);
    ssize_t (*write)(int, const void*, size_t);
    int (*close)(int);
    int (*close_range)(unsigned, unsigned, int);
    int (*dup)(int);
    int (*dup2)(int, int);
    int (*dup3)(int, int, int);
    int (*fcntl)(int, int, ...);
    int (*socket)(int, int, int);
    // signals
    int (*sigaction)(int, const struct sigaction*, struct sigaction*);
    __sighandler_t (*signal)(int, __sighandler_t);
    __sighandler_t (*sysv_signal)(int, __sighandler_t);
    int (*sigprocmask)(int, const sigset_t*, sigset_t*);
    int (*pthread_sigmask)(int, const sigset_t*, sigset_t*);
    // programs
    int (*execve)(const char*, char* const*, char* const*);
    int (*execvpe)(const char*, char* const*, char* const*);
    int (*fexecve)(int, char* const*, char* const*);
};

const libc_functions& libc();

} // namespace ucxl::softhca
