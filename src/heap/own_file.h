// A file of the heap by its descriptor, which the program may have closed, and given to something else.
//
// Example: if (file.is_open()) ftruncate(file.fd, length);
#pragma once

#include "sys/kept_fd.h"

namespace ucxl::heap
{

struct own_file {
    int fd = -1;
    file_identity identity{};

    bool is_open() const { return fd >= 0 && file_identity::of(fd) == identity; }
};

} // namespace ucxl::heap
