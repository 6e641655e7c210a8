#include "process_identity.h"

#include "sys/process.h"

#include <cerrno>
#include <csignal>
#include <unistd.h>

namespace ucxl::softhca
{

namespace
{

bool exists(std::int32_t process)
{
    const int saved  = errno;
    const bool found = ::kill(process, 0) == 0 || errno != ESRCH;
    errno            = saved;
    return found;
}

} // namespace

process_identity own_identity()
{
    const std::int32_t process = ::getpid();
    const auto status          = status_of_process(process);
    return {.process = process, .start_time = status ? status->start_time : 0};
}

bool is_running(const process_identity& process)
{
    const auto status = status_of_process(process.process);
    // /proc cannot be read without a free descriptor. That says nothing about the process, and who takes it for ended
    // releases what it uses.
    if (!status) {
        return exists(process.process);
    }
    return status->state != 'Z' && status->state != 'X' && status->start_time == process.start_time;
}

} // namespace ucxl::softhca
