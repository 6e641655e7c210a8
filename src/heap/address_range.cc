#include "address_range.h"

#include "kernel_call.h"
#include "settings.h"
#include "small_file.h"
#include "sys/resource_limit.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <unistd.h>

namespace ucxl::heap
{

namespace
{

// Pieces begin at multiples of this in memory and in the file, so that the kernel can use huge pages.
constexpr std::size_t granule     = huge_page;
constexpr std::size_t least_piece = std::size_t{64} << 20;

std::size_t round_up(std::size_t length, std::size_t to)
{
    return (length + to - 1) & ~(to - 1);
}

// Then each page of a file in memory counts when it is touched, and too many are a SIGBUS there.
bool is_overcommit_off()
{
    char mode[2];
    read_text("/proc/sys/vm/overcommit_memory", mode);
    return mode[0] == '2';
}

// How many descriptors the kernel's table of them has room for.
rlim_t room_for_descriptors()
{
    constexpr rlim_t least      = 64;
    constexpr const char line[] = "\nFDSize:";
    char status[1024];
    read_text("/proc/self/status", status);
    const char* const found = std::strstr(status, line);
    return found == nullptr ? least : std::max<rlim_t>(least, std::strtoul(found + sizeof(line) - 1, nullptr, 10));
}

// Out of the way of programs that expect to get the lowest descriptors. A table that grows takes the kernel 9 to 15 ms
// in a process with threads, because it waits until no other one can be reading the old table.
int move_up(int fd)
{
    constexpr rlim_t high = 512;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t lowest = std::min(high, limit.rlim_cur / 2);
    if (!__libc_single_threaded) {
        lowest = std::min(lowest, room_for_descriptors() / 4 * 3);
    }
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(lowest));
    if (moved < 0) {
        return fd;
    }
    close(fd);
    return moved;
}

} // namespace

constinit address_range heap_range;

const char* address_range::reserve(std::size_t length, bool has_huge_pages)
{
    length = length & ~(granule - 1);
    if (length == 0) {
        return "UCX_LAYOUT_HEAP_LIMIT is 0";
    }
    // The range would count as if it were used, and the program has been measured without it.
    if (has_limit(RLIMIT_AS, UINT64_MAX)) {
        return "the addresses of this process are limited (ulimit -v)";
    }
    // A child could have no copy of the pieces, which are not counted, because they are shared.
    if (has_limit(RLIMIT_DATA, UINT64_MAX)) {
        return "the data of this process are limited (ulimit -d)";
    }
    if (is_overcommit_off()) {
        return "the system does not overcommit memory (vm.overcommit_memory=2)";
    }
    const auto map_nothing = [&] {
        return mmap(nullptr, length + granule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    };
    void* reserved = map_nothing();
    while (reserved == MAP_FAILED && length / 2 >= least_piece) {
        length   = length / 2 & ~(granule - 1);
        reserved = map_nothing();
    }
    if (reserved == MAP_FAILED) {
        return "no addresses could be reserved";
    }
    const std::uintptr_t start = round_up(reinterpret_cast<std::uintptr_t>(reserved), granule);
    _has_huge_pages            = has_huge_pages;
    _next                      = reinterpret_cast<std::byte*>(start);
    _start.store(start, std::memory_order_relaxed);
    _length.store(length, std::memory_order_release);
    if (!add_piece(1)) {
        _length.store(0, std::memory_order_release);
        munmap(reserved, length + granule);
        return "no file in memory could be made (memfd_create(2))";
    }
    _thread.keep_room();
    return nullptr;
}

// What is free, of a process whose addresses are limited while it runs: all of them count, so it may have more than it
// is allowed, and could map nothing.
void address_range::give_back_limited_addresses()
{
    const unsigned number = _num_pieces.load(std::memory_order_relaxed);
    if (number == 0 || !has_limit(RLIMIT_AS, UINT64_MAX)) {
        return;
    }
    const auto start         = reinterpret_cast<std::byte*>(_start.load(std::memory_order_relaxed));
    const std::size_t length = _length.load(std::memory_order_relaxed);
    const auto mapped        = static_cast<std::size_t>(_pieces[number - 1].start + _pieces[number - 1].length - start);
    if (mapped < length) {
        _length.store(mapped, std::memory_order_release);
        call(SYS_munmap, start + mapped, length - mapped);
    }
}

bool address_range::make_file()
{
    const int made = memfd_create("ucx_layout_heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) {
        return false;
    }
    const auto identity = file_identity::of(made);
    if (fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK) != 0 || !identity) {
        close(made);
        return false;
    }
    _file        = {.fd = move_up(made), .identity = *identity};
    _file_length = 0;
    return true;
}

// Each piece is an eighth of all before it or more, so that there are few.
bool address_range::add_piece(std::size_t least)
{
    give_back_limited_addresses();
    const unsigned number     = _num_pieces.load(std::memory_order_relaxed);
    const auto reserved_start = reinterpret_cast<std::byte*>(_start.load(std::memory_order_relaxed));
    const std::size_t length  = _length.load(std::memory_order_relaxed);
    std::byte* const start    = number == 0 ? reserved_start : _pieces[number - 1].start + _pieces[number - 1].length;
    const auto mapped         = static_cast<std::size_t>(start - reserved_start);
    const std::size_t left    = length - mapped;
    least                     = round_up(least, granule);
    if (number == max_pieces || least > left || (!_file.is_open() && !make_file())) {
        return false;
    }
    const std::size_t wanted = std::min(std::max({least, least_piece, round_up(mapped / 8, granule)}), left);
    const auto file_end      = static_cast<off_t>(_file_length + wanted);
    if (has_limit(RLIMIT_FSIZE, static_cast<std::uint64_t>(file_end)) || ftruncate(_file.fd, file_end) != 0) {
        return false;
    }
    const auto offset = static_cast<off_t>(_file_length);
    if (mmap(start, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, _file.fd, offset) == MAP_FAILED) {
        return false; // the file stays longer, and nothing is there
    }
    if (_has_huge_pages) {
        madvise(start, wanted, MADV_HUGEPAGE); // for kernels whose shmem_enabled is "advise"
    }
    _pieces[number] = {.start       = start,
                       .length      = wanted,
                       .file_offset = _file_length,
                       .file        = _file,
                       .kind        = piece_kind::shared,
                       .copy        = {}};
    _file_length += wanted;
    _next = start;
    _num_pieces.store(number + 1, std::memory_order_release);
    return true;
}

std::byte* address_range::take(std::size_t length, std::size_t alignment)
{
    const auto place = [&] {
        const piece& last = _pieces[_num_pieces.load(std::memory_order_relaxed) - 1];
        std::byte* const at =
            reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(_next), alignment));
        std::byte* const end = last.start + last.length;
        return at <= end && length <= static_cast<std::size_t>(end - at) ? at : nullptr;
    };
    if (length > _length.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    std::byte* at = place();
    if (at == nullptr) {
        const std::size_t padding = alignment > granule ? alignment : 0;
        at                        = add_piece(length + padding) ? place() : nullptr;
    }
    if (at != nullptr) {
        _next = at + length;
    }
    return at;
}

std::byte* address_range::take_at(std::byte* address, std::size_t length)
{
    const piece& last = _pieces[_num_pieces.load(std::memory_order_relaxed) - 1];
    if (address != _next || length > static_cast<std::size_t>(last.start + last.length - address)) {
        return nullptr;
    }
    _next = address + length;
    return address;
}

const address_range::piece* address_range::piece_of(const std::byte* address) const
{
    const unsigned number  = _num_pieces.load(std::memory_order_acquire);
    const auto* const end  = _pieces + number;
    const auto* const next = std::upper_bound(
        _pieces, end, address, [](const std::byte* one, const piece& other) { return one < other.start; });
    return next == _pieces ? nullptr : next - 1;
}

// By the C library's function, so that UCX hears of it: a network card may have registered the pages.
bool address_range::punch(std::byte* address, std::size_t length) const
{
    const piece* const found = piece_of(address);
    if (found == nullptr || (found->kind != piece_kind::shared && found->kind != piece_kind::copied)) {
        return false;
    }
    return madvise(address, length, found->kind == piece_kind::shared ? MADV_REMOVE : MADV_DONTNEED) == 0;
}

bool address_range::are_in_one_piece(const std::byte* one, const std::byte* other) const
{
    return piece_of(one) == piece_of(other);
}

heap_memory_kind address_range::tell(unsigned index, heap_memory& memory) const
{
    if (index >= _num_pieces.load(std::memory_order_acquire)) {
        return heap_memory_none;
    }
    const piece& asked = _pieces[index];
    if (asked.kind != piece_kind::shared || !asked.file.is_open()) {
        return heap_memory_private;
    }
    memory = {.start = asked.start, .length = asked.length, .file_offset = asked.file_offset, .fd = asked.file.fd};
    return heap_memory_shared;
}

std::span<std::byte> address_range::shared_piece_of(const std::byte* address) const
{
    const piece* const found = holds(address) ? piece_of(address) : nullptr;
    const bool is_shared     = found != nullptr && found->kind == piece_kind::shared &&
                           static_cast<std::size_t>(address - found->start) < found->length;
    return is_shared ? std::span(found->start, found->length) : std::span<std::byte>();
}

// Mapping the file privately would not do: what the parent writes later would be seen by the child.
void address_range::before_fork()
{
    give_back_limited_addresses();
    std::size_t shared = 0;
    for (unsigned i = 0; i < _num_pieces.load(std::memory_order_relaxed); ++i) {
        piece& each = _pieces[i];
        if (each.kind == piece_kind::shared) {
            each.copy.make(each.start, each.length, each.file, each.file_offset);
            shared += each.length;
        }
    }
    if (!_thread.make_private(*this)) {
        // The child must not lay an older copy under its frames. It ends where it loses them, before it could tell.
        drop_copies();
        log_lost_in_child(shared);
    }
}

void address_range::drop_copies()
{
    for (unsigned i = 0; i < _num_pieces.load(std::memory_order_relaxed); ++i) {
        _pieces[i].copy.drop();
    }
}

void address_range::after_fork_in_parent()
{
    _thread.share_again();
    drop_copies();
}

// What there is no copy of, the child does not see: it would be what the parent writes later.
void address_range::replace_by_copy(piece& replaced)
{
    replaced.kind = replaced.copy.is_in_file() ? piece_kind::copied_in_file : piece_kind::copied;
    _thread.for_each_other_part(replaced.start, replaced.length, [&](std::byte* start, std::size_t length) {
        if (!replaced.copy.put(static_cast<std::size_t>(start - replaced.start), length, start)) {
            call(SYS_mprotect, start, length, PROT_NONE);
            replaced.kind = piece_kind::lost;
        }
    });
    replaced.copy.drop();
}

bool address_range::after_fork_in_child()
{
    std::size_t lost = 0;
    for (unsigned i = 0; i < _num_pieces.load(std::memory_order_relaxed); ++i) {
        piece& each = _pieces[i];
        if (each.kind == piece_kind::shared) {
            replace_by_copy(each);
            lost += each.kind == piece_kind::lost ? each.length : 0;
        }
    }
    if (lost != 0) {
        log_lost_in_child(lost);
    }
    _thread.stay_private();
    if (_file.is_open()) {
        close(_file.fd);
    }
    // The next piece is of a file of the child's own.
    _file = {};
    return lost == 0;
}

} // namespace ucxl::heap
