#include "process_move.h"

#include "softhca/shim/system/guarded_copy.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <span>
#include <utility>

namespace ucxl::softhca
{
namespace
{

// Copies between two other processes go through this buffer. One per process is enough, because the fabric's lock is
// held.
constexpr std::size_t bounce_bytes = 256 * 1024;
alignas(4096) constinit std::byte bounce[bounce_bytes];

void* pointer(std::uintptr_t address)
{
    return reinterpret_cast<void*>(address);
}

iovec run_of(std::uintptr_t address, std::size_t length)
{
    return {.iov_base = pointer(address), .iov_len = length};
}

std::uintptr_t address_of(const iovec& run)
{
    return reinterpret_cast<std::uintptr_t>(run.iov_base);
}

// Removes `done` bytes from the front. Returns the number of runs used up.
std::size_t advance(std::span<iovec> runs, std::size_t done)
{
    std::size_t used = 0;
    while (used < runs.size() && done >= runs[used].iov_len) {
        done -= runs[used].iov_len;
        ++used;
    }
    if (used < runs.size()) {
        runs[used] = run_of(address_of(runs[used]) + done, runs[used].iov_len - done);
    }
    return used;
}

bool readable_here(std::uintptr_t address)
{
    std::byte probe;
    return guarded_copy(&probe, pointer(address), 1) == copy_status::ok;
}

bool readable_there(pid_t process, std::uintptr_t address)
{
    std::byte probe;
    const iovec ours   = run_of(reinterpret_cast<std::uintptr_t>(&probe), 1);
    const iovec theirs = run_of(address, 1);
    return ::process_vm_readv(process, &ours, 1, &theirs, 1, 0) == 1;
}

} // namespace

bool process_mover::copy_own(std::uintptr_t to, std::uintptr_t from, std::size_t length)
{
    if (to == from) {
        return true;
    }
    switch (guarded_copy(pointer(to), pointer(from), length)) {
    case copy_status::ok:
        break;
    case copy_status::fault_to:
        _status = move_status::fault_to;
        return false;
    case copy_status::fault_from:
        _status = move_status::fault_from;
        return false;
    }
    std::atomic_thread_fence(std::memory_order_release);
    return true;
}

bool process_mover::add(const memory_run& to, const memory_run& from, std::size_t length)
{
    if (_status != move_status::ok) {
        return false;
    }
    if (length == 0) {
        return true;
    }
    if (to.process != 0 && from.process != 0) {
        return flush() && copy_foreign(to, from, length);
    }
    if (to.process != 0) {
        return add_waiting(direction::write, to.process, from.address, to.address, length);
    }
    if (from.process != 0) {
        return add_waiting(direction::read, from.process, to.address, from.address, length);
    }
    return flush() && copy_own(to.address, from.address, length);
}

bool process_mover::add_waiting(direction way, pid_t process, std::uintptr_t ours, std::uintptr_t theirs,
                                std::size_t length)
{
    const bool full = _ours_count == most_ours || _theirs_count == most_theirs;
    if ((way != _way || process != _process || full) && !flush()) {
        return false;
    }
    _way                 = way;
    _process             = process;
    _ours[_ours_count++] = run_of(ours, length);
    add_theirs(theirs, length);
    return true;
}

void process_mover::add_theirs(std::uintptr_t address, std::size_t length)
{
    iovec* const last = _theirs_count != 0 ? &_theirs[_theirs_count - 1] : nullptr;
    if (last != nullptr && address_of(*last) + last->iov_len == address) {
        last->iov_len += length;
    } else {
        _theirs[_theirs_count++] = run_of(address, length);
    }
}

bool process_mover::failed_call(int error, std::uintptr_t ours, std::uintptr_t theirs)
{
    const bool writing = _way == direction::write;
    if (error != EFAULT) { // ESRCH, or EPERM of a process that changed its user
        _status = writing ? move_status::gone_to : move_status::gone_from;
    } else if (writing) {
        _status = readable_here(ours) ? move_status::fault_to : move_status::fault_from;
    } else {
        _status = readable_there(_process, theirs) ? move_status::fault_to : move_status::fault_from;
    }
    return false;
}

bool process_mover::flush()
{
    std::span<iovec> ours   = std::span(_ours).first(std::exchange(_ours_count, 0));
    std::span<iovec> theirs = std::span(_theirs).first(std::exchange(_theirs_count, 0));
    std::atomic_thread_fence(std::memory_order_release);
    while (!ours.empty()) {
        const auto call    = _way == direction::write ? &::process_vm_writev : &::process_vm_readv;
        const ssize_t done = call(_process, ours.data(), ours.size(), theirs.data(), theirs.size(), 0);
        if (done <= 0) { // 0 is not expected, but must not loop
            return failed_call(done < 0 ? errno : EFAULT, address_of(ours.front()), address_of(theirs.front()));
        }
        // A fault after some bytes is found by the next call, which starts there.
        ours   = ours.subspan(advance(ours, static_cast<std::size_t>(done)));
        theirs = theirs.subspan(advance(theirs, static_cast<std::size_t>(done)));
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
}

bool process_mover::copy_foreign(const memory_run& to, const memory_run& from, std::size_t length)
{
    const auto middle = reinterpret_cast<std::uintptr_t>(&bounce[0]);
    for (std::size_t done = 0; done < length;) {
        const std::size_t now = std::min(length - done, bounce_bytes);
        if (!add_waiting(direction::read, from.process, middle, from.address + done, now) || !flush() ||
            !add_waiting(direction::write, to.process, middle, to.address + done, now) || !flush()) {
            return false;
        }
        done += now;
    }
    return true;
}

move_status process_mover::finish()
{
    if (_status == move_status::ok) {
        flush();
    }
    return _status;
}

} // namespace ucxl::softhca
