#include "event_pipe.h"

#include "softhca/shim/system/libc_functions.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <sys/ioctl.h>
#include <vector>

namespace ucxl::softhca
{
namespace
{

// The system limits the size for unprivileged users: fs.pipe-max-size, fs.pipe-user-pages-soft.
bool grow(int pipe)
{
    const int bytes = libc().fcntl(pipe, F_GETPIPE_SZ);
    return bytes > 0 && bytes <= INT_MAX / 2 && libc().fcntl(pipe, F_SETPIPE_SZ, 2 * bytes) > bytes;
}

// Returns how much was written: less than all only when there is no room.
std::size_t append(int pipe, std::span<const std::byte> bytes)
{
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t written = libc().write(pipe, bytes.data() + done, bytes.size() - done);
        if (written >= 0) {
            done += static_cast<std::size_t>(written);
        } else if (errno != EAGAIN || !grow(pipe)) {
            break;
        }
    }
    return done;
}

// Reads all unread events with one call: none can come meanwhile, and a concurrent reader gets the events before them
// or none.
std::vector<std::byte> take_all(int pipe)
{
    int unread = 0;
    if (libc().ioctl(pipe, FIONREAD, &unread) != 0 || unread <= 0) {
        return {};
    }
    std::vector<std::byte> events(static_cast<std::size_t>(unread));
    const ssize_t taken = libc().read(pipe, events.data(), events.size());
    events.resize(static_cast<std::size_t>(std::max<ssize_t>(taken, 0)));
    return events;
}

} // namespace

bool append_event(int pipe, std::span<const std::byte> event)
{
    return append(pipe, event) == event.size();
}

std::uint32_t remove_events(int pipe, std::size_t event_bytes, std::uint64_t value)
{
    std::vector<std::byte> events = take_all(pipe);
    std::size_t kept              = 0;
    std::uint32_t removed         = 0;
    for (std::size_t at = 0; at + event_bytes <= events.size(); at += event_bytes) {
        if (std::memcmp(events.data() + at, &value, sizeof(value)) == 0) {
            ++removed;
        } else {
            std::memmove(events.data() + kept, events.data() + at, event_bytes);
            kept += event_bytes;
        }
    }
    // There was room for them before.
    (void)append(pipe, std::span(events).first(kept));
    return removed;
}

} // namespace ucxl::softhca
