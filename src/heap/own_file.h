// A file of the heap by its descriptor, which the program may have closed, and given to something else.
//
// Example: if (file.is_open()) ftruncate(file.fd, length);
#pragma once

#include <sys/stat.h>

namespace ucxl::heap
{

struct own_file {
    int fd       = -1;
    dev_t device = 0;
    ino_t inode  = 0;

    bool is_open() const
    {
        struct stat status{};
        return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == device &&
               status.st_ino == inode;
    }
};

} // namespace ucxl::heap
