#include "target_memory.h"

#include "call_table.h"
#include "contexts.h"
#include "handle_table.h"
#include "implementation.h"
#include "library.h"
#include "one_pass.h"
#include "peers.h"
#include "settings.h"
#include "sys/mapped_ranges.h"
#include "sys/mapping.h"
#include "sys/pages.h"
#include "sys/peer_file.h"
#include "sys/peer_segment.h"
#include "sys/process.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <ucp_layout.h>

namespace ucxl::mpi
{

namespace
{

// file: opened and mapped. mapped_file: MPICH has mapped it in all processes, until the window ends.
enum class shown_by : std::uint32_t { nothing, file, mapped_file, segment };

// What a process tells the others of its memory. They believe it only as far as the file or the segment is what it
// should be (peer_file, peer_segment).
struct told_memory {
    process_identity process;
    std::uint64_t device; // of the file, if it is mapped
    std::uint64_t inode;  // of the file
    std::uint64_t offset; // in the file or the segment
    std::uint64_t length; // bytes
    std::int64_t unit;
    std::int32_t number; // descriptor of the file, or number of the segment
    shown_by kind;       // nothing: of all these only `process` is set
};

// Not a device, whose memory may be another one in each process.
bool is_shared_file(const mapped_range& range)
{
    return range.is_shared() && range.inode != 0 && std::string_view(range.access.data()).starts_with("rw") &&
           range.name.starts_with("/dev/shm/");
}

// A process may have some 65,000 mappings (vm.max_map_count), and its own memory needs them, too.
constexpr unsigned max_mapped = 8192;
std::atomic<unsigned> num_mapped{0};

// The memory of one target, or of this process itself.
class target
{
public:
    explicit target(const told_memory& told) : _told(told) {}
    explicit target(std::byte* own, const told_memory& told) : _told(told), _start(own), _is_tried(true) {}
    ~target() { num_mapped.fetch_sub(_is_counted ? 1 : 0, std::memory_order_relaxed); }
    target(const target&)            = delete;
    target& operator=(const target&) = delete;

    std::optional<target_memory::seen> see() noexcept
    {
        if (!_is_tried.load(std::memory_order_acquire)) [[unlikely]] {
            map();
        }
        if (_start == nullptr) {
            return std::nullopt;
        }
        return target_memory::seen{_start, static_cast<MPI_Aint>(_told.length), static_cast<MPI_Aint>(_told.unit)};
    }

private:
    void map() noexcept
    {
        const std::lock_guard guard(_lock);
        if (_is_tried.load(std::memory_order_relaxed)) {
            return;
        }
        try {
            const auto mapped = map_told();
            if (!mapped) {
                log_info("memory of a one-sided target is not mapped: %s", mapped.error().message.c_str());
            }
        } catch (const std::bad_alloc&) {
            // MPI does the operations
        }
        _is_tried.store(true, std::memory_order_release);
    }

    result<void> map_told()
    {
        const std::uint64_t in_page = _told.offset % page_length();
        if (_told.length > INT64_MAX - page_length() || _told.offset > INT64_MAX - _told.length) {
            return fail(errc::invalid_param, "it is longer than a file");
        }
        if (_told.kind == shown_by::mapped_file) {
            _start = find_mapped();
            return _start != nullptr ? result<void>() : fail(errc::invalid_param, "this process has not mapped it");
        }
        _is_counted = num_mapped.fetch_add(1, std::memory_order_relaxed) < max_mapped;
        if (!_is_counted) {
            num_mapped.fetch_sub(1, std::memory_order_relaxed);
            return fail(errc::no_memory, "this process has mapped so many already");
        }
        if (_told.kind == shown_by::segment) {
            const std::uint64_t end = _told.offset + _told.length;
            _segment                = UCXL_TRY(peer_segment::attach(_told.process.pid, _told.number, end));
            _start                  = _segment.start() + _told.offset;
            return {};
        }
        const auto file = UCXL_TRY(peer_file::open(_told.process.pid, _told.number, _told.inode, O_RDWR));
        _mapping        = UCXL_TRY(map_peer_memory(file, _told.offset - in_page, in_page + _told.length));
        _start          = _mapping.start() + in_page;
        return {};
    }

    std::byte* find_mapped() const
    {
        for (const mapped_range& each : mapped_ranges_of(0, {0, UINT64_MAX}, false)) {
            const std::uint64_t offset = _told.offset - each.file_offset, length = each.end - each.start;
            if (is_shared_file(each) && each.device == _told.device && each.inode == _told.inode && offset < length &&
                _told.length <= length - offset) {
                return reinterpret_cast<std::byte*>(each.start + offset);
            }
        }
        return nullptr;
    }

    told_memory _told;
    std::byte* _start = nullptr; // set before `_is_tried`
    std::atomic<bool> _is_tried{false};
    bool _is_counted = false;
    std::mutex _lock;
    owned_mapping _mapping;
    peer_segment _segment;
};

struct known_window {
    std::vector<std::unique_ptr<target>> targets; // by rank; null: MPI does it
};

// An entry ends with the attribute of its window, which MPI deletes, whoever calls MPI_Win_free.
handle_table<MPI_Win, known_window> windows;
int keyval = MPI_KEYVAL_INVALID;
std::atomic<unsigned> num_windows{0};
// By rank in MPI_COMM_WORLD.
std::array<std::atomic<bool>, one_pass::max_processes> takes_part{};

// All processes come to the same answer: each has told all others that it has windows, before this, or it has not.
bool all_can_talk()
{
    const unsigned long number = one_pass::num_processes();
    return number > 1 && number <= one_pass::max_processes && contexts::tells_peers() &&
           !contexts::has_peer_without_windows() && contexts::num_peers() >= number;
}

void remove(MPI_Win win) noexcept
{
    if (num_windows.load(std::memory_order_relaxed) == 0) {
        return;
    }
    if (const std::unique_ptr<known_window> ended(windows.remove(win)); ended != nullptr) {
        num_windows.fetch_sub(1, std::memory_order_relaxed);
    }
}

int forget(MPI_Win win, int /*keyval*/, void* /*value*/, void* /*extra*/)
{
    remove(win);
    return MPI_SUCCESS;
}

// Memory of GPUs is MPI's.
bool has_host_memory_only()
{
    ucp_layout_context_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_CONTEXT_ATTR_FIELD_MEMORY_TYPES;
    return ucp_layout_context_query(contexts::of_messages(), &attr) == UCS_OK && attr.memory_types == 0;
}

bool can_take_part()
{
    const settings& chosen = settings::get();
    return library::is_active() && chosen.is_one_pass && chosen.takes_one_sided && has_host_memory_only() &&
           takes_call("MPI_Win_create") && takes_call("MPI_Win_allocate") && takes_call("MPI_Put") &&
           takes_call("MPI_Get") &&
           (keyval != MPI_KEYVAL_INVALID ||
            PMPI_Win_create_keyval(copy_none<MPI_Win>, forget, &keyval, nullptr) == MPI_SUCCESS);
}

// The same for all processes of the communicator. Without MPI_Init none does, and MPI may have no MPI_COMM_WORLD:
// MPICH 5 ends a job of sessions that names it.
bool all_take_part(MPI_Comm comm, int number)
{
    MPI_Group group{}, world{};
    if (!library::has_world() || number > static_cast<int>(takes_part.size()) ||
        PMPI_Comm_group(comm, &group) != MPI_SUCCESS) {
        return false;
    }
    std::array<int, one_pass::max_processes> ranks{}, in_world{};
    std::iota(ranks.begin(), ranks.end(), 0);
    bool all = PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS;
    if (all) {
        all = PMPI_Group_translate_ranks(group, number, ranks.data(), world, in_world.data()) == MPI_SUCCESS;
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&group);
    return all && std::all_of(in_world.begin(), in_world.begin() + number, [](int rank) {
               return rank >= 0 && rank < static_cast<int>(takes_part.size()) &&
                      takes_part[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
           });
}

// What MPI made for a window. Memory that a program shares may be in use by others, too.
void tell_shared(const void* base, told_memory& told)
{
    const auto range = shared_range_around(base, told.length);
    if (!range) {
        return;
    }
    told.offset = range->file_offset_of(reinterpret_cast<std::uintptr_t>(base));
    if (const auto number = number_of_segment(*range)) {
        told.number = *number;
        told.kind   = shown_by::segment;
    } else if (implementation_below() == implementation::mpich && is_shared_file(*range)) {
        told.device = range->device;
        told.inode  = range->inode;
        told.kind   = shown_by::mapped_file;
    }
}

told_memory tell(const void* base, MPI_Aint length, MPI_Aint unit, target_memory::made_by memory) noexcept
try {
    told_memory told{};
    told.process = process_identity::own();
    if (length <= 0) {
        return told;
    }
    told.length = static_cast<std::uint64_t>(length);
    told.unit   = unit;
    heap_memory piece{};
    struct stat file{};
    if (one_pass::find_in_heap(base, told.length, piece) && fstat(piece.fd, &file) == 0) {
        told.inode  = file.st_ino;
        told.offset = piece.file_offset + static_cast<std::uint64_t>(static_cast<const std::byte*>(base) - piece.start);
        told.number = piece.fd;
        told.kind   = shown_by::file;
    } else if (memory == target_memory::made_by::mpi) {
        tell_shared(base, told);
    }
    return told;
} catch (const std::bad_alloc&) {
    return {};
}

std::unique_ptr<known_window> window_of(const told_memory* told, int number, int own_rank, std::byte* base,
                                        target_memory::made_by memory)
{
    auto made = std::make_unique<known_window>();
    for (int rank = 0; rank < number; ++rank) {
        const told_memory& each = told[rank];
        const bool is_made      = each.kind == shown_by::mapped_file || each.kind == shown_by::segment;
        const bool is_refused   = is_made && memory != target_memory::made_by::mpi;
        if (each.kind == shown_by::nothing || is_refused || !may_share_memory(told[own_rank].process, each.process)) {
            made->targets.push_back(nullptr);
        } else if (rank == own_rank) {
            made->targets.push_back(std::make_unique<target>(base, each));
        } else {
            made->targets.push_back(std::make_unique<target>(each));
        }
    }
    return made;
}

} // namespace

std::byte* target_memory::seen::at(MPI_Aint displacement) const
{
    MPI_Aint offset = 0, address = 0;
    return __builtin_mul_overflow(displacement, unit, &offset) ||
                   __builtin_add_overflow(reinterpret_cast<MPI_Aint>(start), offset, &address)
               ? nullptr
               : reinterpret_cast<std::byte*>(address);
}

bool target_memory::seen::has(const std::byte* first, const std::byte* end) const
{
    const auto from     = reinterpret_cast<std::uintptr_t>(first);
    const auto all      = static_cast<std::uintptr_t>(length);
    const auto offset   = from - reinterpret_cast<std::uintptr_t>(start);
    const auto distance = reinterpret_cast<std::uintptr_t>(end) - from;
    return offset <= all && distance <= all - offset;
}

void target_memory::start(bool is_first) noexcept
{
    int number = 0;
    if (!all_can_talk() || PMPI_Comm_size(MPI_COMM_WORLD, &number) != MPI_SUCCESS ||
        static_cast<unsigned long>(number) != one_pass::num_processes()) {
        return;
    }
    // Other threads may be making windows of a session's communicators right now, which have to know all of this.
    const std::uint8_t own = is_first && can_take_part() ? 1 : 0;
    std::array<std::uint8_t, one_pass::max_processes> all{};
    if (PMPI_Allgather(&own, 1, MPI_BYTE, all.data(), 1, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS) {
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            takes_part[rank].store(all[rank] != 0, std::memory_order_relaxed);
        }
    }
}

void target_memory::leave_world() noexcept
{
    for (auto& each : takes_part) {
        each.store(false, std::memory_order_relaxed);
    }
}

void target_memory::stop() noexcept
{
    leave_world();
    for (known_window* const each : windows.clear()) {
        delete each;
    }
    num_windows.store(0, std::memory_order_relaxed);
    if (keyval != MPI_KEYVAL_INVALID) {
        PMPI_Win_free_keyval(&keyval); // it lives as long as what is attached
    }
}

void target_memory::add(MPI_Win win, const void* base, MPI_Aint length, MPI_Aint unit, MPI_Comm comm,
                        made_by memory) noexcept
{
    const peers own(comm);
    if (!own.is_valid || !all_take_part(comm, static_cast<int>(own.number))) {
        return;
    }
    // Memory for it must not be what one process lacks: the others would wait.
    std::array<told_memory, one_pass::max_processes> all;
    const told_memory told = tell(base, length, unit, memory);
    constexpr int size     = sizeof(told_memory);
    if (PMPI_Allgather(&told, size, MPI_BYTE, all.data(), size, MPI_BYTE, comm) != MPI_SUCCESS) {
        return;
    }
    try {
        auto made = window_of(all.data(), static_cast<int>(own.number), own.rank,
                              static_cast<std::byte*>(const_cast<void*>(base)), memory);
        if (std::ranges::any_of(made->targets, [](const auto& each) { return each != nullptr; }) &&
            windows.add(win, made.get())) {
            made.release();
            num_windows.fetch_add(1, std::memory_order_relaxed);
            if (PMPI_Win_set_attr(win, keyval, nullptr) != MPI_SUCCESS) {
                remove(win);
            }
        }
    } catch (const std::bad_alloc&) {
        // MPI does the operations
    }
}

auto target_memory::find(MPI_Win win, int rank) noexcept -> std::optional<seen>
{
    if (num_windows.load(std::memory_order_relaxed) == 0) {
        return std::nullopt;
    }
    const known_window* const known = windows.find(win);
    if (known == nullptr || rank < 0 || static_cast<std::size_t>(rank) >= known->targets.size()) {
        return std::nullopt;
    }
    const auto& found = known->targets[static_cast<std::size_t>(rank)];
    return found == nullptr ? std::nullopt : found->see();
}

} // namespace ucxl::mpi
