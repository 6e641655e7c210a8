#include "output.h"

#include "failure.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ucxl::tools
{

void flush_output()
{
    errno                 = 0;
    const bool is_flushed = std::fflush(stdout) == 0;
    const int error       = errno;
    if (!is_flushed || std::ferror(stdout) != 0) {
        give_up("standard output: {}", error != 0 ? std::strerror(error) : "not all of it could be written");
    }
}

} // namespace ucxl::tools
