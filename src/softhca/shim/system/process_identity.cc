#include "process_identity.h"

#include "sys/process.h"

#include <unistd.h>

namespace ucxl::softhca
{

process_identity own_identity()
{
    const std::int32_t process = ::getpid();
    const auto status          = status_of_process(process);
    return {.process = process, .start_time = status ? status->start_time : 0};
}

bool is_running(const process_identity& process)
{
    const auto status = status_of_process(process.process);
    return status && status->state != 'Z' && status->state != 'X' && status->start_time == process.start_time;
}

} // namespace ucxl::softhca
