#include "device_process.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <format>
#include <mutex>

#include "softhca/shim/settings.h"
#include "softhca/shim/system/fault_signals.h"
#include "softhca/shim/system/libc_functions.h"
#include "softhca/shim/system/process_identity.h"

namespace ucxl::softhca
{

namespace
{

constinit std::mutex attaching;
constinit bool finished = false; // under the lock

// How often queues are checked when doorbells may be missed.
constexpr std::uint64_t watch_period_ns = 50'000;

// How long the end of the process waits for threads inside the model.
constexpr std::uint64_t patience_ns = 200'000'000;

// No process has descriptors from here on.
constexpr unsigned most_descriptors = 1U << 20;

[[gnu::tls_model("initial-exec")]] constinit thread_local unsigned visits_here = 0;

void say(const std::string& reason)
{
    static std::atomic<bool> said = false;
    if (!said.exchange(true)) {
        const std::string line = std::format("softhca: {}\n", reason);
        (void)!libc().write(STDERR_FILENO, line.data(), line.size());
    }
}

std::expected<fabric_memory, std::string> find_memory(const settings& given)
{
    const char* const place = std::getenv(fabric_variable);
    if (place != nullptr && *place != '\0') {
        const auto where = parse_fabric_place(place);
        if (!where) {
            return std::unexpected(std::format("{}: '{}' is not PID:DESCRIPTOR", fabric_variable, place));
        }
        return fabric_memory::open(where->process, where->file);
    }
    const auto options = to_options(given);
    if (!options) {
        return std::unexpected(options.error());
    }
    return fabric_memory::create(*options);
}

} // namespace

constinit std::atomic<device_process*> device_process::_current = nullptr;
constinit std::atomic<device_process*> device_process::_newest  = nullptr;
constinit std::atomic<pid_t> device_process::_memory_owner      = 0;

device_process::device_process(const fabric_memory& memory, const process_identity& process, std::string trace_file)
    : _memory(memory), _process(process),
      _host(memory.records(), memory.lock(), process, std::move(trace_file), on_wake, this)
{
}

std::optional<fabric_memory>& device_process::shared_memory()
{
    static std::optional<fabric_memory> memory; // survives fork(), because the child may attach, too
    return memory;
}

device_process* device_process::make()
{
    const settings given = settings_of_environment();
    auto& memory         = shared_memory();
    if (!memory) {
        auto found = find_memory(given);
        if (!found) {
            say(found.error());
            return nullptr;
        }
        memory = *found;
    }
    const process_identity process = own_identity();
    if (process.start_time == 0) {
        say("/proc does not tell when this process was started");
        return nullptr;
    }
    std::unique_ptr<device_process> made(new device_process(*memory, process, given.trace));
    auto attached = fabric::attach(memory->bytes(), made->_host, process);
    if (!attached) {
        say(attached.error());
        return nullptr;
    }
    made->_fabric = std::move(*attached);
    made->_host.set_self(made->_fabric->self());
    made->_kernel = std::make_unique<kernel>(*made->_fabric, static_cast<kernel_host&>(*made));
    return made.release();
}

device_process* device_process::attach()
{
    if (device_process* const here = current()) {
        return here;
    }
    const uncancelled entire;
    const std::lock_guard hold(attaching);
    if (device_process* const here = current()) {
        return here;
    }
    static bool hooked         = false;
    const int saved            = errno;
    device_process* const made = finished ? nullptr : make();
    if (made == nullptr) {
        errno = ENODEV;
        return nullptr;
    }
    if (!hooked) {
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        hooked = true;
    }
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    _memory_owner.store(made->_process.process);
    made->_previous = _newest.load();
    _newest.store(made, std::memory_order_release);
    _current.store(made, std::memory_order_release);
    install_fault_handlers(take_fault);
    errno = saved;
    return made;
}

device_process* device_process::owner_of(int fd)
{
    for (device_process* at = _newest.load(std::memory_order_acquire); at != nullptr; at = at->_previous) {
        if (at->_kernel->owns(fd)) {
            return at;
        }
    }
    return nullptr;
}

bool device_process::in_use() const
{
    return current() == this;
}

bool device_process::is_this_process() const
{
    return in_use() && ::getpid() == _process.process;
}

bool device_process::is_own_memory()
{
    return ::getpid() == _memory_owner.load();
}

device_process::visit::~visit()
{
    if (_to != nullptr) {
        --visits_here;
        _to->leave();
    }
}

bool device_process::enter()
{
    _visitors.fetch_add(1);
    if (_ended.load()) {
        leave();
        return false;
    }
    ++visits_here;
    return true;
}

// Called before the kernel's part. False with errno.
bool device_process::prepare_call()
{
    if (!in_use()) {
        errno = EIO;
        return false;
    }
    if (visits_here > 1) { // a signal handler that interrupted another call
        errno = EDEADLK;
        return false;
    }
    install_fault_handlers(take_fault);
    _pages.locate(_file_device, _file_inode);
    return true;
}

// In a child of fork(): the child's own device_process, once it has device files behind the inherited descriptors. Null
// when there is none.
device_process* device_process::heir()
{
    if (_child.load() != ::getpid()) {
        return nullptr;
    }
    device_process* const here = attach();
    return here != nullptr && here->_kernel->adopt(*_kernel) ? here : nullptr;
}

void device_process::closing(int fd)
{
    for (device_process* at = _newest.load(std::memory_order_acquire); at != nullptr; at = at->_previous) {
        if (at->_kernel->owns(fd) && is_own_memory()) {
            at->forget(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
        }
    }
}

void device_process::closing(unsigned first, unsigned last)
{
    for (device_process* at = _newest.load(std::memory_order_acquire); at != nullptr; at = at->_previous) {
        if (is_own_memory()) {
            at->forget(first, last);
        }
    }
}

// The number may become that of any file, also when the device cannot be told: the process has ended, or is a child of
// fork() with the files of its parent, or this is a signal handler that interrupted the model.
void device_process::forget(unsigned first, unsigned last)
{
    const visit inside(*this);
    const bool tells = inside && visits_here == 1;
    for (unsigned fd = first; fd <= std::min(last, most_descriptors); ++fd) {
        if (tells) {
            _kernel->closing(static_cast<int>(fd));
        } else {
            _kernel->disown(static_cast<int>(fd));
        }
    }
}

void device_process::duplicated(int from, int to)
{
    for (device_process* at = _newest.load(std::memory_order_acquire); at != nullptr; at = at->_previous) {
        if ((!at->_kernel->owns(from) && !at->_kernel->owns(to)) || !is_own_memory()) {
            continue;
        }
        const visit inside(*at);
        if (inside && visits_here == 1) {
            at->_kernel->duplicated(from, to);
        } else {
            at->_kernel->disown(to);
        }
    }
}

int device_process::ioctl(int fd, unsigned long request, void* argument)
{
    if (device_process* const here = heir()) {
        return here->ioctl(fd, request, argument);
    }
    const visit inside(*this);
    if (!inside) {
        errno = EIO;
        return -1;
    }
    return prepare_call() ? _kernel->ioctl(fd, request, argument) : -1;
}

ssize_t device_process::write(int fd, const void* bytes, std::size_t length)
{
    if (device_process* const here = heir()) {
        return here->write(fd, bytes, length);
    }
    const visit inside(*this);
    if (!inside) {
        errno = EIO;
        return -1;
    }
    return prepare_call() ? _kernel->write(fd, bytes, length) : -1;
}

ssize_t device_process::was_read(int fd, const void* bytes, std::size_t length)
{
    // Nothing to look for in what cannot be the end of a channel. So usual reads take no lock.
    const auto* const read = static_cast<const std::byte*>(bytes);
    if (!in_use() || (length != 0 && read[length - 1] != std::byte{0xff})) {
        return static_cast<ssize_t>(length);
    }
    const visit inside(*this);
    if (!inside || visits_here > 1) {
        return static_cast<ssize_t>(length);
    }
    return _kernel->was_read(fd, {read, length});
}

void device_process::posted(std::uint32_t qpn)
{
    const visit inside(*this);
    if (!inside) {
        return;
    }
    if (_host.held_here()) {
        missed_some();
        return;
    }
    _fabric->progress_queue_pair(qpn);
}

void device_process::progress()
{
    const visit inside(*this);
    if (inside && !_host.held_here()) {
        const bool missed = _missed.exchange(false) || _watching.load();
        _fabric->progress(missed);
    }
}

void device_process::ring(std::uint32_t uar, std::size_t offset, std::uint64_t value)
{
    const visit inside(*this);
    if (!inside) {
        return;
    }
    if (_host.held_here()) {
        missed_some();
        return;
    }
    _fabric->doorbell(uar, offset, value);
}

void device_process::missed_some()
{
    _missed.store(true);
    _host.wake_now();
}

void device_process::lost_track()
{
    _watching.store(true);
    _host.wake_now();
}

void device_process::on_wake(void* process)
{
    auto* const self = static_cast<device_process*>(process);
    self->progress();
    if (self->_watching.load()) {
        self->_host.wake_at(monotonic_ns() + watch_period_ns);
    }
}

bool device_process::take_fault(int signal, siginfo_t& fault, void* context)
{
    for (device_process* at = _newest.load(std::memory_order_acquire); at != nullptr; at = at->_previous) {
        if (at->_pages.handle(signal, fault, context, *at)) {
            return true;
        }
    }
    return false;
}

void device_process::before_fork()
{
    attaching.lock();
}

void device_process::after_fork_in_parent()
{
    attaching.unlock();
}

void device_process::after_fork_in_child()
{
    _memory_owner.store(::getpid());
    if (device_process* const inherited = _current.exchange(nullptr)) {
        inherited->_ended.store(true);
        inherited->_child.store(::getpid());
        inherited->_pages.disown();
        inherited->_host.forget_timer();
    }
    attaching.unlock();
}

void device_process::end_current()
{
    device_process* const at = current();
    if (at != nullptr && at->is_this_process()) {
        _current.store(nullptr, std::memory_order_release);
        at->end();
    }
}

void device_process::finish()
{
    const std::lock_guard hold(attaching);
    finished = true;
    end_current();
}

void device_process::before_program()
{
    device_process* const at = current();
    if (at == nullptr || !at->is_this_process()) {
        return; // also a child on its parent's memory, which must not touch the lock
    }
    const std::lock_guard hold(attaching);
    end_current();
}

void device_process::end()
{
    const uncancelled entire;
    _ended.store(true);
    _pages.disown();
    // exit() in a signal handler that interrupted the model: other processes find out that this one has ended.
    if (_host.held_here()) {
        return;
    }
    _host.stop_timer();
    const std::uint64_t until = monotonic_ns() + patience_ns;
    while (_visitors.load() > visits_here) {
        if (monotonic_ns() > until) {
            return;
        }
        const timespec briefly{.tv_sec = 0, .tv_nsec = 100'000};
        ::nanosleep(&briefly, nullptr);
    }
    if (visits_here == 0) {
        _fabric.reset();
    }
}

} // namespace ucxl::softhca
