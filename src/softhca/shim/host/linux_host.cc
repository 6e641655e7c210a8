#include "linux_host.h"

#include "event_pipe.h"
#include "event_record.h"
#include "softhca/shim/system/libc_functions.h"
#include "softhca/shim/system/own_descriptors.h"
#include "softhca/shim/system/process_identity.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace ucxl::softhca
{
namespace
{

// How long a process that was seen running is assumed to run. Its id cannot be reused in that time, and copies detect
// the end of a process themselves.
constexpr std::uint64_t believed_ns = 1'000'000;

// Shorter times are spent in a loop: timers of the kernel are late by more than that.
constexpr std::uint64_t worth_sleeping_ns = 200'000;

// The host whose lock this thread holds, or is about to take or to let go: between the two steps a signal handler must
// not take it, either. Fixed offsets: handlers must not allocate.
[[gnu::tls_model("initial-exec")]] constinit thread_local const linux_host* holder = nullptr;

// A channel of this process to which the model keeps a writer, see make_event_channel(). A file that the program has
// meanwhile under the same number is not open in that way: writing to it may block, or raise SIGPIPE.
bool is_kept_writer(int channel)
{
    const int flags = libc().fcntl(channel, F_GETFL);
    return flags >= 0 && (flags & (O_ACCMODE | O_NONBLOCK)) == (O_RDWR | O_NONBLOCK);
}

} // namespace

linux_host::linux_host(arena& records, shared_lock& lock, const process_identity& process, std::string trace_file,
                       wake_timer::function wake, void* argument)
    : _records(records), _lock(lock), _process(process), _trace_file(std::move(trace_file)), _timer(wake, argument)
{
}

bool linux_host::held_here() const
{
    return holder == this;
}

bool linux_host::lock()
{
    holder = this;
    return _lock.lock();
}

void linux_host::unlock()
{
    _lock.unlock();
    holder = nullptr;
}

bool linux_host::find_run(const piece& part, std::uint64_t skip, memory_run& found)
{
    switch (part.space) {
    case space::engine:
        found = {.process = 0, .address = part.address + skip};
        return true;
    case space::memic: {
        const std::byte* const at = memic_at(_records, part.address, part.length);
        found                     = {.process = 0, .address = reinterpret_cast<std::uintptr_t>(at) + skip};
        return at != nullptr;
    }
    case space::process:
        found = {.process = part.client == _self ? 0 : _records.clients[part.client].process,
                 .address = part.address + skip};
        return true;
    }
    return false;
}

bool linux_host::foreign_gone(const piece& part)
{
    return part.space == space::process && part.client != _self && !alive(part.client);
}

// Passes the pieces to the mover as runs. Returns why it stopped; an earlier run may have failed before that.
move_status linux_host::move_runs(process_mover& mover, std::span<const piece> to, std::span<const piece> from)
{
    std::size_t to_index    = 0;
    std::size_t from_index  = 0;
    std::uint64_t to_done   = 0;
    std::uint64_t from_done = 0;
    while (to_index < to.size() && from_index < from.size()) {
        const piece& target = to[to_index];
        const piece& source = from[from_index];
        if (to_done == 0 && foreign_gone(target)) {
            return move_status::gone_to;
        }
        if (from_done == 0 && foreign_gone(source)) {
            return move_status::gone_from;
        }
        memory_run target_run;
        memory_run source_run;
        if (!find_run(target, to_done, target_run)) {
            return move_status::fault_to;
        }
        if (!find_run(source, from_done, source_run)) {
            return move_status::fault_from;
        }
        const std::uint64_t length = std::min(target.length - to_done, source.length - from_done);
        if (!mover.add(target_run, source_run, length)) {
            break;
        }
        to_done += length;
        from_done += length;
        if (to_done == target.length) {
            ++to_index;
            to_done = 0;
        }
        if (from_done == source.length) {
            ++from_index;
            from_done = 0;
        }
    }
    return move_status::ok;
}

move_status linux_host::move(std::span<const piece> to, std::span<const piece> from)
{
    process_mover mover;
    const move_status left  = move_runs(mover, to, from);
    const move_status moved = mover.finish();
    if (moved == move_status::gone_to || moved == move_status::gone_from) {
        believe_ended(mover.missing());
    }
    return moved != move_status::ok ? moved : left;
}

// Marks a process whose memory is gone as ended. /proc may list it for a while, not only as a zombie.
void linux_host::believe_ended(pid_t process)
{
    for (std::size_t i = 0; i < max_clients; ++i) {
        const client_record& record = _records.clients[i];
        if (record.owner.life == life::live && record.process == process) {
            _others[i] = {.generation = record.generation, .running = false, .seen_ns = 0};
        }
    }
}

bool linux_host::alive(client_id client)
{
    if (client == _self && _self != 0) {
        return true;
    }
    if (client >= max_clients) {
        return false;
    }
    const client_record& record = _records.clients[client];
    if (record.owner.life != life::live) {
        return false;
    }
    // This process before it executed another program: same id, same start time.
    if (record.process == _process.process) {
        return false;
    }
    acquaintance& known     = _others[client];
    const std::uint64_t now = monotonic_ns();
    if (known.generation != record.generation || (known.running && now - known.seen_ns > believed_ns)) {
        known = {.generation = record.generation,
                 .running    = is_running({.process = record.process, .start_time = record.start_time}),
                 .seen_ns    = now};
    }
    return known.running;
}

void linux_host::notify(client_id client, event_route& route, std::uint32_t type)
{
    if (route.channel < 0 || client >= max_clients) {
        return;
    }
    const event_record event = format_event(route, type);
    if (event.length == 0) {
        return;
    }
    const int saved   = errno;
    const int process = client == _self ? _process.process : _records.clients[client].process;
    if (deliver(process, route, event)) {
        ++route.sent;
    }
    errno = saved;
}

// Without a free descriptor another process does not get its events; this one does. Other failures: it waits for none.
void linux_host::count_lost(int error)
{
    _records.counts.lost_events += error == -EMFILE || error == -ENFILE ? 1 : 0;
}

bool linux_host::count_up(int process, int counter, std::span<const std::byte> bytes)
{
    if (!is_event_fd(process, counter)) {
        return false;
    }
    const bool mine  = process == _process.process;
    const int opened = mine ? counter : borrow_descriptor(process, counter);
    if (opened < 0) {
        count_lost(opened);
        return false;
    }
    const bool written = libc().write(opened, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (!mine) {
        libc().close(opened);
    }
    return written;
}

bool linux_host::deliver(int process, const event_route& route, const event_record& event)
{
    const event_format format = format_of(route.kind);
    const auto bytes          = std::span(event.bytes).first(event.length);
    if (format == event_format::devx_count) {
        return count_up(process, route.channel, bytes);
    }
    // Opened for reading as well, so that writing never fails for want of a reader. Not kept open: the program may
    // close and open channels under the same number.
    const bool kept = process == _process.process && is_kept_writer(route.channel);
    const int channel =
        kept ? route.channel : reopen_descriptor(process, route.channel, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (channel < 0) {
        count_lost(channel);
        return false;
    }
    struct stat found{};
    bool written = libc().fstat(channel, &found) == 0 && S_ISFIFO(found.st_mode);
    if (written) {
        if (format == event_format::devx_data) {
            // Packets: a reader gets one event at a time, whatever the size of its buffer.
            libc().fcntl(channel, F_SETFL, O_NONBLOCK | O_DIRECT);
        }
        written = append_event(channel, bytes);
        _records.counts.lost_events += written ? 0 : 1;
    }
    if (!kept) {
        libc().close(channel);
    } else if (format == event_format::devx_data) {
        libc().fcntl(channel, F_SETFL, O_NONBLOCK); // events that drop_events() writes back at once are no packet
    }
    return written;
}

void linux_host::spend(std::uint64_t time_ns)
{
    const std::uint64_t until = monotonic_ns() + time_ns;
    if (time_ns > worth_sleeping_ns) {
        const std::uint64_t slept = time_ns - worth_sleeping_ns / 2;
        const timespec pause{.tv_sec  = static_cast<time_t>(slept / 1'000'000'000),
                             .tv_nsec = static_cast<long>(slept % 1'000'000'000)};
        ::nanosleep(&pause, nullptr);
    }
    while (monotonic_ns() < until) {
    }
}

void linux_host::trace(std::span<const char> text)
{
    const int saved = errno;
    if (_trace_file == "-") {
        (void)!libc().write(STDERR_FILENO, text.data(), text.size());
    } else {
        // Opened each time, because programs close descriptors that they do not know.
        const int file = libc().open(_trace_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (file >= 0) {
            (void)!libc().write(file, text.data(), text.size());
            libc().close(file);
        }
    }
    errno = saved;
}

} // namespace ucxl::softhca
