#include "process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl
{

peer_process::peer_process(pid_t pid) : _fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))
{
}

peer_process::~peer_process()
{
    if (_fd >= 0) {
        close(_fd);
    }
}

bool peer_process::is_alive() const
{
    pollfd ended{_fd, POLLIN, 0};
    return _fd >= 0 && poll(&ended, 1, 0) == 0;
}

} // namespace ucxl
