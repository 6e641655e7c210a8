// Reads short files of the kernel, without allocating memory.
#pragma once

#include <cstddef>

#include <fcntl.h>
#include <unistd.h>

namespace ucxl::heap
{

// As much of the file as fits. Empty if it cannot be read.
template <std::size_t Size>
void read_text(const char* path, char (&text)[Size])
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = 0;
    if (file >= 0) {
        length = read(file, text, Size - 1);
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
}

} // namespace ucxl::heap
