#include "region.h"

#include "descriptor_shortage.h"
#include "moved_memory.h"
#include "reader_section.h"
#include "shown_file.h"
#include "window.h"

#include "sys/fork.h"
#include "sys/mapped_ranges.h"
#include "sys/memory_file.h"
#include "sys/pages.h"

#include <algorithm>
#include <array>
#include <format>
#include <iterator>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

namespace ucxl
{

namespace
{

// A last part that fills most of a huge page gets all of it.
std::uint64_t round_to_huge_pages(std::uint64_t length)
{
    const std::uint64_t huge = huge_page_length();
    const std::uint64_t part = huge == 0 ? 0 : length % huge;
    return part >= huge - huge / 4 ? length - part + huge : length;
}

// Whether all of the memory shows the file in order from `offset` on, and is shared.
bool shows_file(std::uint64_t start, std::uint64_t end, const struct stat& file, std::uint64_t offset)
{
    std::uint64_t at = start;
    for (const mapped_range& range : mapped_ranges_of(0, {start, end}, false)) {
        if (range.start > at || !range.is_shared() || range.device != file.st_dev || range.inode != file.st_ino ||
            range.file_offset + (at - range.start) != offset + (at - start)) {
            return false;
        }
        at = range.end;
    }
    return at >= end;
}

} // namespace

result<void> region::keep(owned_fd file)
{
    _file = kept_fd(std::move(file));
    if (!_file) {
        return fail(errc::invalid_param, std::format("the file of shared memory: {}", std::strerror(errno)));
    }
    return {};
}

namespace
{

// For all processes that map the file.
result<void> prefer_node(std::byte* start, std::uint64_t length, int node)
{
    constexpr int preferred                     = 1; // MPOL_PREFERRED
    constexpr std::size_t bits                  = 8 * sizeof(unsigned long);
    std::array<unsigned long, 1024 / bits> mask = {};
    mask[static_cast<std::size_t>(node) / bits] |= 1ul << static_cast<std::size_t>(node) % bits;
    if (syscall(SYS_mbind, start, length, preferred, mask.data(), 1024 + 1, 0) != 0) {
        return fail(errc::invalid_param, std::format("numa_node {}: {}", node, std::strerror(errno)));
    }
    return {};
}

} // namespace

result<region_ptr> region::allocate(std::uint64_t length, const region_options& options)
{
    const bool are_huge = options.huge_pages != huge_pages_option::never;
    length              = round_to_pages(std::max<std::uint64_t>(length, 1));
    if (are_huge) {
        length = round_to_huge_pages(length);
    }
    std::shared_ptr<region> made(new region);
    auto file = UCXL_TRY(make_memory_file("ucx_layout", length, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    UCXL_TRY(made->keep(std::move(file)));
    made->_mapping =
        UCXL_TRY(owned_mapping::map_file(length, PROT_READ | PROT_WRITE, made->_file.get(), 0, options.alignment));
    if (options.numa_node >= 0) {
        UCXL_TRY(prefer_node(made->_mapping.start(), length, options.numa_node));
    }
    if (are_huge) {
        auto filled = fill_with_huge_pages(made->_mapping.start(), length);
        if (!filled && options.huge_pages == huge_pages_option::always) {
            return std::unexpected(std::move(filled.error()));
        }
    }
    made->_start  = made->_mapping.start();
    made->_length = length;
    return made;
}

namespace
{

// Whether the memory can be of the file, as far as the numbers say.
result<void> check_place(std::uintptr_t start, std::uint64_t length, const struct stat& file,
                         const struct statfs& system, std::uint64_t offset)
{
    if (!is_in_memory(file, system)) {
        return fail(errc::invalid_param, "the file of shared memory is not in memory (memfd_create(2), shm_open(3))");
    }
    const std::uint64_t page = page_length_of(file, system);
    const bool is_huge       = page != page_length();
    if (length == 0 || start % page != 0 || offset % page != 0 || (is_huge && length % page != 0) ||
        start > UINTPTR_MAX - length || offset > static_cast<std::uint64_t>(INT64_MAX) - length) {
        return fail(errc::invalid_param,
                    std::format("shared memory of {} bytes at {:#x}, from offset {} of its file on: "
                                "start and offset have to be at page boundaries of {} bytes",
                                length, start, offset, page));
    }
    if (static_cast<std::uint64_t>(file.st_size) < offset + length) {
        return fail(errc::invalid_param, std::format("the file of shared memory has {} bytes, and {} are needed",
                                                     file.st_size, offset + length));
    }
    return {};
}

} // namespace

result<region_ptr> region::share(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset)
{
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    std::shared_ptr<region> made(new region);
    made->_file = kept_fd(above_standard_ones(owned_fd(fcntl(fd, F_DUPFD_CLOEXEC, 0))));
    struct stat status{};
    struct statfs system{};
    if (!made->_file || fstat(fd, &status) != 0 || fstatfs(fd, &system) != 0) {
        const int reason          = errno;
        const std::string message = std::format("the file of shared memory: {}", std::strerror(reason));
        return reason == EBADF ? fail(errc::invalid_param, message) : fail_or_no_descriptor(message);
    }
    UCXL_TRY(check_place(first, length, status, system, offset));
    if (!shows_file(first, first + length, status, offset)) {
        return fail_or_no_descriptor(std::format("the {} bytes at {:#x} are not a shared mapping of the file from "
                                                 "offset {} on",
                                                 length, first, offset));
    }
    // Peers look whether it is sealed, too.
    static_cast<void>(fcntl(made->_file.get(), F_ADD_SEALS, F_SEAL_SHRINK));
    made->_keeps_its_memory = ucxl::keeps_its_memory(made->_file.file());
    made->_origin           = region_origin::caller;
    made->_start            = start;
    made->_length           = length;
    made->_file_offset      = offset;
    return made;
}

result<region_ptr> region::share(std::byte* start, std::uint64_t length)
{
    const auto shown = UCXL_TRY(shown_file::find(start, length));
    return share(start, length, shown.fd(), shown.offset());
}

result<region_ptr> region::move(std::byte* start, std::uint64_t length, huge_pages_option huge_pages)
{
    std::shared_ptr<region> made(new region);
    auto moved         = UCXL_TRY(move_into_file(start, length, huge_pages != huge_pages_option::never));
    made->_origin      = region_origin::moved; // from here on the memory goes back with the object
    made->_start       = moved.start;
    made->_length      = moved.length;
    made->_file_offset = moved.offset;
    UCXL_TRY(made->keep(std::move(moved.file)));
    return made;
}

region::~region()
{
    withdraw();
}

// Once: later, other things may be at these addresses.
void region::withdraw() const noexcept
{
    if (!_is_withdrawn.exchange(true) && _origin == region_origin::moved) {
        make_private(_start, _length, fd_if_there(), _file_offset);
        _is_private.store(true, std::memory_order_release); // a fork in between leaves the child to do it
    }
}

bool region::is_moved() const noexcept
{
    return _origin == region_origin::moved && !_is_private.load(std::memory_order_acquire);
}

void region::take_memory_from_parent() const noexcept
{
    if (is_moved()) {
        make_private_in_child(_start, _length, fd_if_there(), _file_offset);
    }
}

void region::withdraw_what_was_taken() const noexcept
{
    if (is_moved()) {
        _is_withdrawn.store(true);
        _is_private.store(true);
    }
}

void region::withdraw_in_child() const noexcept
{
    _is_withdrawn.store(true);
    _file.close();
}

// Never destroyed: destructors that run later may look for regions.
region_table& region_table::instance()
{
    static region_table& only = *[] {
        window_registry::hold_lock_over_fork(); // with the list of reader sections, which is locked under this lock
        auto* const made = new region_table;
        hold_over_fork<[]() -> std::mutex& { return instance()._lock; }>();
        return made;
    }();
    return only;
}

[[gnu::constructor(201)]] static void make_region_table_at_load()
{
    region_table::instance();
}

// Handlers of fork() write in the child, maybe into memory that was moved: those of the program, and those that open
// the locks of the library. In a child those are called first that were registered first.
[[gnu::constructor(199)]] static void take_memory_in_children()
{
    pthread_atfork(nullptr, nullptr, [] { region_table::instance().take_moved_memory_from_parent(); });
}

region_table::~region_table()
{
    delete _now.load();
}

// Under the lock, as all that follow.
region_table::snapshot region_table::live_entries() const
{
    snapshot live;
    if (const snapshot* const before = _now.load()) {
        std::ranges::copy_if(*before, std::back_inserter(live), [](const entry& known) {
            const region_ptr held = known.held.lock();
            return held != nullptr && !held->is_withdrawn();
        });
    }
    return live;
}

void region_table::replace(std::unique_ptr<const snapshot> after)
{
    const std::unique_ptr<const snapshot> before(_now.exchange(after.release()));
    wait_for_readers();
    if (_told == nullptr) {
        return;
    }
    std::vector<region_ptr> all;
    for (const entry& known : *_now.load()) {
        if (region_ptr held = known.held.lock()) {
            all.push_back(std::move(held));
        }
    }
    _told(all);
}

result<void> region_table::add(const region_ptr& added)
{
    const auto start = reinterpret_cast<std::uintptr_t>(added->start());
    const entry made{start, start + added->length(), added, added.get()};
    const std::lock_guard guard(_lock);
    auto after       = std::make_unique<snapshot>(live_entries());
    const auto place = std::ranges::upper_bound(*after, start, {}, &entry::start);
    if ((place != after->end() && place->start < made.end) || (place != after->begin() && place[-1].end > start)) {
        return fail(errc::invalid_param,
                    std::format("some of the {} bytes at {:#x} are shared memory already", added->length(), start));
    }
    after->insert(place, made);
    replace(std::move(after));
    return {};
}

void region_table::remove(const region& removed)
{
    removed.withdraw();
    const std::lock_guard guard(_lock);
    if (_now.load() != nullptr) {
        replace(std::make_unique<snapshot>(live_entries()));
    }
}

// The child has one thread. It must not write into memory that its parent had for itself, and regions, and what counts
// their holders, may be on pages of such memory.
void region_table::take_moved_memory_from_parent() const noexcept
{
    for (const auto step : {&region::take_memory_from_parent, &region::withdraw_what_was_taken}) {
        const snapshot* const now = _now.load();
        for (std::size_t i = 0; now != nullptr && i < now->size(); ++i) {
            const entry& each = (*now)[i];
            if (!each.held.expired()) {
                (each.made->*step)();
            }
        }
    }
}

void region_table::watch(watcher told)
{
    const std::lock_guard guard(_lock);
    _told = told;
    if (_now.load() != nullptr) {
        replace(std::make_unique<snapshot>(live_entries()));
    }
}

region_ptr region_table::find(const void* address, std::uint64_t length) const
{
    const reader_section section;
    const snapshot* const now = _now.load();
    if (now == nullptr) {
        return nullptr;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const auto next  = std::ranges::upper_bound(*now, first, {}, &entry::start);
    if (next == now->begin() || length > next[-1].end - std::min(first, next[-1].end)) {
        return nullptr;
    }
    region_ptr found = next[-1].held.lock();
    return found != nullptr && !found->is_withdrawn() ? found : nullptr;
}

} // namespace ucxl
