#include "arena.h"

#include "abi/memory_types.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/random.h>

namespace ucxl
{

namespace
{

constexpr int reserved_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
constexpr std::size_t slot   = slot_table::slot_length;

// A process that imports windows of another one knows them by their addresses, so no two processes should have windows
// at the same ones. The kernel puts all arenas near the end of the address space; in this range, which it leaves alone
// unless it is asked, there is room to be apart. Where the range is not usable, it chooses another place itself.
void* random_place()
{
    constexpr std::uintptr_t first  = std::uintptr_t{20} << 40;
    constexpr std::uintptr_t length = std::uintptr_t{60} << 40;
    std::uint64_t number            = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number)) {
        return nullptr;
    }
    return reinterpret_cast<void*>((first + number % length) / slot * slot);
}

// Bytes between the outer margins.
std::size_t length_of_parts(std::size_t slots_of_part, std::size_t num_parts)
{
    return num_parts * slots_of_part * slot + (num_parts - 1) * arena::margin;
}

} // namespace

arena::arena(std::byte* base, std::size_t slots_of_part, std::size_t num_parts, const type_list& types)
    : _base(base), _length(length_of_parts(slots_of_part, num_parts)), _num_parts(num_parts), _parts{}, _types(types)
{
    const auto count = static_cast<std::uint32_t>(slots_of_part);
    for (std::uint32_t part = 0; part < num_parts; ++part) {
        _parts[part] = {part * (count + 1), count}; // one slot is the margin between them
    }
}

result<std::unique_ptr<arena>> arena::reserve(std::size_t length, const part_types& types)
{
    if (length < slot) {
        return fail(errc::invalid_param, "UCX_LAYOUT_ARENA_SIZE is " + std::to_string(length) + " bytes; at least " +
                                             std::to_string(slot) + " are needed");
    }
    constexpr auto rdma         = UCS_MEMORY_TYPE_RDMA;
    const std::size_t num_slots = std::min(length / slot, std::size_t{slot_table::max_slots} - num_window_parts);
    const std::size_t parts     = std::min(types.staged ? (types.direct ? 3uz : 2uz) : 1uz, num_slots);
    std::size_t now             = num_slots / parts; // slots of each part
    const std::size_t least     = std::min(now, min_length / slot / parts);
    for (;; now /= 2) {
        const std::size_t needed = length_of_parts(now, parts) + 2 * margin;
        void* start              = mmap(random_place(), needed, PROT_NONE, reserved_flags, -1, 0);
        if (start != MAP_FAILED) {
            std::unique_ptr<arena> created(new (std::nothrow)
                                               arena(static_cast<std::byte*>(start) + margin, now, parts,
                                                     {rdma, types.staged.value_or(rdma), types.direct.value_or(rdma)}));
            if (created == nullptr) {
                munmap(start, needed);
                return fail(errc::no_memory, "no memory for the window arena");
            }
            created->announce();
            return created;
        }
        if (now / 2 < least) {
            return fail(errc::no_memory, "could not reserve " + std::to_string(now * parts * slot >> 20) +
                                             " MiB of addresses for windows: " + std::strerror(errno) +
                                             " (address space limit of the process? see UCX_LAYOUT_ARENA_SIZE)");
        }
    }
}

arena::~arena()
{
    munmap(_base - margin, _length + 2 * margin);
    abi::forget_memory(_base - margin, _length + 2 * margin);
}

void arena::announce() const
{
    // The margin between two parts is of the type of the first one.
    const std::byte* begin = _base - margin;
    for (std::size_t part = 0; part < _num_parts; ++part) {
        const slot_area& slots     = _parts[part];
        const std::byte* const end = _base + (slots.first + slots.count) * slot + margin;
        abi::announce_memory(begin, static_cast<std::size_t>(end - begin), _types[part]);
        begin = end;
    }
}

result<void> arena::clear(std::uint64_t offset, std::size_t length) const
{
    if (length > 0 && mmap(_base + offset, length, PROT_NONE, reserved_flags | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return fail(errc::no_memory,
                    std::string("could not reserve the addresses of a window again: ") + std::strerror(errno));
    }
    return {};
}

result<void> arena::map_file(std::uint64_t offset, std::size_t length, int fd, std::uint64_t file_offset) const
{
    if (mmap(_base + offset, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             static_cast<off_t>(file_offset)) == MAP_FAILED) {
        return fail(errno == ENOMEM ? errc::no_memory : errc::invalid_param,
                    std::string("could not map the memory of a window at its address: ") + std::strerror(errno));
    }
    return {};
}

} // namespace ucxl
