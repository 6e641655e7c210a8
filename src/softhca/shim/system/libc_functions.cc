#include "libc_functions.h"

#include <cstdlib>
#include <dlfcn.h>

namespace ucxl::softhca
{
namespace
{

template <typename Function>
void find(Function*& into, const char* name)
{
    // A function that an older C library lacks stays null; no program can call it there.
    into = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

libc_functions find_all()
{
    libc_functions found{};
    find(found.open, "open64");
    find(found.openat, "openat64");
    find(found.fopen, "fopen64");
    find(found.access, "access");
    find(found.faccessat, "faccessat");
    find(found.stat, "stat");
    find(found.lstat, "lstat");
    find(found.fstat, "fstat");
    find(found.fstatat, "fstatat");
    find(found.statx, "statx");
    find(found.readlink, "readlink");
    find(found.readlinkat, "readlinkat");
    find(found.realpath, "realpath");
    find(found.opendir, "opendir");
    find(found.fdopendir, "fdopendir");
    find(found.readdir, "readdir64");
    find(found.closedir, "closedir");
    find(found.dirfd, "dirfd");
    find(found.rewinddir, "rewinddir");
    find(found.telldir, "telldir");
    find(found.seekdir, "seekdir");
    find(found.scandir, "scandir");
    find(found.scandir64, "scandir64");
    find(found.ioctl, "ioctl");
    find(found.read, "read");
    find(found.write, "write");
    find(found.close, "close");
    find(found.close_range, "close_range");
    find(found.dup, "dup");
    find(found.dup2, "dup2");
    find(found.dup3, "dup3");
    find(found.fcntl, "fcntl64");
    find(found.socket, "socket");
    find(found.sigaction, "sigaction");
    find(found.signal, "signal");
    find(found.sysv_signal, "sysv_signal");
    find(found.sigprocmask, "sigprocmask");
    find(found.pthread_sigmask, "pthread_sigmask");
    find(found.execve, "execve");
    find(found.execvpe, "execvpe");
    find(found.fexecve, "fexecve");
    return found;
}

} // namespace

const libc_functions& libc()
{
    static const libc_functions found = find_all();
    return found;
}

} // namespace ucxl::softhca
