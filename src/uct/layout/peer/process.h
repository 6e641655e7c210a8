// Another process, to be asked whether it still is: a number alone may come to mean a new one.
//
// Example: const peer_process peer(pid); if (start_time_of(pid) == wanted && peer.is_alive()) { it is the one }
#pragma once

#include <sys/types.h>

namespace ucxl
{

class peer_process
{
public:
    // Of the process that has the number now, if any.
    explicit peer_process(pid_t pid);
    peer_process(const peer_process&)            = delete;
    peer_process& operator=(const peer_process&) = delete;
    ~peer_process();

    // False also where the kernel could not tell (before Linux 5.3).
    bool is_alive() const;

private:
    int _fd;
};

} // namespace ucxl
