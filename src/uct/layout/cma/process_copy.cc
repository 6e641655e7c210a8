#include "process_copy.h"

#include "ucs/layout/walk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include <sys/uio.h>

namespace ucxl
{

namespace
{

// Blocks per system call: enough to spread the cost of a call; the kernel takes up to 1024.
constexpr std::size_t max_pieces = 128;
// The kernel cuts calls slightly below 2 GiB.
constexpr std::uint64_t max_call = std::uint64_t{1} << 30;
// The plan gathers or scatters shorter blocks of this process: that is faster than the kernel, piece by piece.
constexpr std::uint64_t min_local_block = 512;
constexpr std::size_t staging_length    = 32 << 10;

class piece_list
{
public:
    bool is_full() const { return _count == max_pieces; }
    std::size_t count() const { return _count; }
    const iovec* pieces() const { return _pieces.data(); }
    void clear() { _count = 0; }

    void add(std::uint64_t address, std::uint64_t length)
    {
        if (_count > 0) {
            iovec& last = _pieces[_count - 1];
            if (reinterpret_cast<std::uintptr_t>(last.iov_base) + last.iov_len == address) {
                last.iov_len += length;
                return;
            }
        }
        _pieces[_count++] = {reinterpret_cast<void*>(address), length};
    }

private:
    std::array<iovec, max_pieces> _pieces;
    std::size_t _count = 0;
};

// The pieces of memory in packed order. `address_of(source)` is the address from which the offsets of a source count.
template <typename AddressOf>
class walker
{
public:
    walker(const layout& layout, std::uint64_t offset, AddressOf address_of) : _cursor(layout), _address_of(address_of)
    {
        _cursor.seek(offset);
        load();
    }

    std::uint64_t address() const { return _address; }
    std::uint64_t left() const { return _block.length; }
    void advance(std::uint64_t length)
    {
        _cursor.advance(length);
        if (length < _block.length) {
            _block.length -= length;
            _address += length;
        } else if (!_cursor.at_end()) {
            load();
        }
    }

private:
    void load()
    {
        _block   = _cursor.block();
        _address = _address_of(_block.source) + static_cast<std::uint64_t>(_block.offset);
    }

    block_cursor _cursor;
    AddressOf _address_of;
    placed_block _block{};
    std::uint64_t _address = 0;
};

class plain_walker
{
public:
    explicit plain_walker(const std::byte* memory) : _address(reinterpret_cast<std::uintptr_t>(memory)) {}

    std::uint64_t address() const { return _address; }
    std::uint64_t left() const { return UINT64_MAX; }
    void advance(std::uint64_t length) { _address += length; }

private:
    std::uint64_t _address;
};

enum class copy_way { from_process, to_process };

// Pieces of this process, and those of the window's owner.
struct piece_pair {
    piece_list here, there;
    std::uint64_t length = 0; // of each
};

ssize_t call_for(copy_way way, pid_t thread, const piece_pair& pieces)
{
    const auto copy = way == copy_way::from_process ? process_vm_readv : process_vm_writev;
    return copy(thread, pieces.here.pieces(), pieces.here.count(), pieces.there.pieces(), pieces.there.count(), 0);
}

// The kernel finds no memory by the number of a process whose first thread has ended, but by that of each other one.
ssize_t call_for_any_thread(copy_way way, pid_t pid, const piece_pair& pieces)
{
    constexpr unsigned tries = 4; // the other thread may end, too
    ssize_t done             = call_for(way, pid, pieces);
    for (unsigned i = 0; done < 0 && errno == ESRCH && i < tries; ++i) {
        const auto other = other_thread_of(pid);
        if (!other) {
            errno = ESRCH;
            break;
        }
        done = call_for(way, *other, pieces);
    }
    return done;
}

// Whether the window is still that of the key, and its memory that of the program that made it. Published is asked
// last, and behind what was read before: the bases in the record, and bytes of the owner.
bool is_still_there(const imported_window& imported)
{
    if (has_lost_owner(imported)) {
        return false;
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_published(imported);
}

// The record of a window that ended may have become that of another one while the pieces were collected. So this asks
// before it writes, and after it has read: neither another window nor a program that came in the owner's place is
// written to, and nothing of them is taken for the window's.
bool call(copy_way way, const imported_window& imported, const piece_pair& pieces)
{
    if (way == copy_way::to_process && !is_still_there(imported)) {
        errno = ESTALE;
        return false;
    }
    const ssize_t done  = call_for_any_thread(way, imported.key.owner.pid, pieces);
    const bool is_whole = done >= 0 && static_cast<std::uint64_t>(done) == pieces.length;
    const int reason    = done >= 0 ? EFAULT : errno; // the kernel stops at the first missing page
    const bool is_gone  = way == copy_way::from_process && !is_still_there(imported);
    errno               = is_gone ? ESTALE : reason;
    return is_whole && !is_gone;
}

template <typename Remote, typename Local>
bool copy_pieces(copy_way way, const imported_window& imported, Remote& remote, Local local, std::uint64_t length)
{
    piece_pair pieces;
    auto& [here, there, size] = pieces;
    while (length > 0) {
        size = 0;
        there.clear();
        here.clear();
        while (size < std::min(length, max_call) && !there.is_full() && !here.is_full()) {
            const std::uint64_t piece = std::min({remote.left(), local.left(), length - size, max_call - size});
            there.add(remote.address(), piece);
            here.add(local.address(), piece);
            remote.advance(piece);
            local.advance(piece);
            size += piece;
        }
        if (!call(way, imported, pieces)) {
            return false;
        }
        length -= size;
    }
    return true;
}

template <typename Remote>
bool copy_staged(copy_way way, const imported_window& imported, Remote& remote, const transfer_side& local,
                 std::uint64_t length)
{
    alignas(64) std::array<std::byte, staging_length> buffer;
    for (std::uint64_t at = 0; at < length;) {
        const std::uint64_t size = std::min<std::uint64_t>(length - at, buffer.size());
        if (way == copy_way::to_process && !read_side(local, at, size, buffer.data())) {
            errno = ENXIO;
            return false;
        }
        if (!copy_pieces(way, imported, remote, plain_walker(buffer.data()), size)) {
            return false;
        }
        if (way == copy_way::from_process && !write_side(local, at, size, buffer.data())) {
            errno = ENXIO;
            return false;
        }
        at += size;
    }
    return true;
}

bool copy(copy_way way, const imported_window& imported, std::uint64_t offset, const transfer_side& local,
          std::uint64_t length)
{
    if (length == 0) {
        return true;
    }
    if (!is_exported(imported)) {
        errno = ESTALE;
        return false;
    }
    walker remote(*imported.described, offset, [&](std::uint32_t source) { return base_in_owner(imported, source); });
    if (local.plan == nullptr) {
        return copy_pieces(way, imported, remote, plain_walker(local.memory), length);
    }
    const layout& described = *local.plan->source_layout();
    if (local.is_indirect() || described.packed_length() / described.blocks().count < min_local_block) {
        return copy_staged(way, imported, remote, local, length);
    }
    const auto address_of = [&](std::uint32_t source) { return reinterpret_cast<std::uintptr_t>(local.bases[source]); };
    return copy_pieces(way, imported, remote, walker(described, local.offset, address_of), length);
}

} // namespace

bool copy_from_process(const imported_window& from, std::uint64_t offset, const transfer_side& to, std::size_t length)
{
    return copy(copy_way::from_process, from, offset, to, length);
}

bool copy_to_process(const imported_window& to, std::uint64_t offset, const transfer_side& from, std::size_t length)
{
    return copy(copy_way::to_process, to, offset, from, length);
}

} // namespace ucxl
