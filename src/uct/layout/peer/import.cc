#include "import.h"

#include "limits.h"
#include "memory_figures.h"

#include "abi/log.h"
#include "sys/clock.h"
#include "sys/fork.h"
#include "sys/guarded_range.h"
#include "sys/pages.h"
#include "ucs/layout/walk.h"
#include "ucs/window/reader_section.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <format>
#include <map>
#include <mutex>
#include <tuple>

#include <fcntl.h>
#include <sched.h>
#include <sys/uio.h>

namespace ucxl
{

namespace
{

// Changes some hundred times a second, and is cheap to read.
std::int64_t clock_tick()
{
    return nanoseconds_of(CLOCK_MONOTONIC_COARSE);
}

} // namespace

// A process whose records can be read.
struct shm_peer {
    shm_peer(peer_file file, pid_t pid) : records(std::move(file)), process(pid) {}

    mutable peer_file records; // under the importer's lock
    watched_process process;
    std::optional<peer_board> board{};
    mutable std::optional<offered_passes> passes{}; // if there is a board
    mutable std::optional<watched_memory> memory{}; // set before the first window is imported that is not mapped

    // Asks the kernel once in each of its clock ticks. A number comes back only after all others, which is later.
    bool is_alive() const
    {
        const std::int64_t tick = clock_tick();
        if (_seen_alive.load(std::memory_order_relaxed) == tick) {
            return true;
        }
        const bool is_alive = process.is_alive();
        if (is_alive) {
            _seen_alive.store(tick, std::memory_order_relaxed);
        }
        return is_alive;
    }

private:
    mutable std::atomic<std::int64_t> _seen_alive{-1};
};

// Of the regions of peers that are mapped.
struct mapped_bytes {
    std::uint64_t all   = 0;
    std::uint64_t idle  = 0; // of those without windows that have keys, and what is kept for idle windows
    std::size_t regions = 0; // how many there are
};

// Everything here is under the importer's lock.
struct mapped_region {
    mapped_region(owned_mapping mapping, std::optional<guarded_range> guarding, std::shared_ptr<const shm_peer> peer,
                  mapped_bytes& counted)
        : memory(std::move(mapping)), guard(std::move(guarding)), owner(std::move(peer)), _counted(counted)
    {
        _counted.all += memory.length();
        _counted.idle += memory.length();
        ++_counted.regions;
    }
    mapped_region(const mapped_region&)            = delete;
    mapped_region& operator=(const mapped_region&) = delete;
    ~mapped_region()
    {
        _counted.all -= memory.length();
        --_counted.regions;
        if (_used_windows == 0) {
            _counted.idle -= memory.length();
        }
    }

    void add_used()
    {
        if (_used_windows++ == 0) {
            _counted.idle -= memory.length();
        }
    }
    void remove_used()
    {
        if (--_used_windows == 0) {
            _counted.idle += memory.length();
        }
    }

    const owned_mapping memory;
    const std::optional<guarded_range> guard;    // if the file may lose pages
    const std::shared_ptr<const shm_peer> owner; // so that no other peer has its address

private:
    mapped_bytes& _counted;
    unsigned _used_windows = 0; // that have keys
};

namespace
{

// The generation is unique in the memory of a process.
using window_name = std::tuple<std::int32_t, std::uint64_t, std::uint64_t, std::uint64_t>;
using peer_name   = std::tuple<std::int32_t, std::uint64_t, std::uint64_t>;
// Device and inode mean one file for as long as it is mapped. A descriptor may come to mean another one.
using region_name = std::tuple<const shm_peer*, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>;

window_name name_of(const shm_key& key)
{
    return {key.owner.pid, key.owner.start_time, key.records_inode, key.generation};
}

struct importer {
    std::mutex lock;
    std::map<window_name, std::unique_ptr<imported_window>> windows;
    std::map<peer_name, std::weak_ptr<const shm_peer>> peers;
    std::map<region_name, std::weak_ptr<mapped_region>> regions;
    std::list<imported_window*> idle; // oldest first
    std::list<imported_window*> used;
    mapped_bytes bytes;

    static importer& instance();
    result<imported_window*> acquire(const shm_key& key);
    imported_window* find(const shm_key& key) noexcept;
    void release(imported_window* imported) noexcept;
    void drop_idle() noexcept;
    bool follow(const imported_window& imported);
    import_counts count() const { return {windows.size(), idle.size(), bytes.regions, bytes.all}; }

private:
    result<std::shared_ptr<const shm_peer>> find_peer(const shm_key& key);
    result<std::shared_ptr<const shm_peer>> add_peer(const shm_key& key);
    void add_use(imported_window& known) noexcept;
    result<shm_record> read_record(const shm_peer& from, const shm_key& key) const;
    result<void> make_room(std::uint64_t length);
    result<std::shared_ptr<mapped_region>> map_memory(const imported_window& of_window, const shm_place& place);
    result<std::shared_ptr<mapped_region>> find_region(const imported_window& of_window, const shm_place& place);
    result<std::unique_ptr<const mapped_sources>> map_sources(const imported_window& of_window, std::uint64_t binding,
                                                              std::span<const shm_place> places);
    void set_sources(const imported_window& to, std::unique_ptr<const mapped_sources> sources);
    result<void> add_memory(imported_window& to, const shm_record& record);
    result<imported_window*> import(const shm_key& key);
    bool bind_anew(const imported_window& imported);
    void forget_ended() noexcept;
    static void count_used(const imported_window& counted) noexcept;
    static void count_idle(const imported_window& counted) noexcept;
    void remove_from_idle(imported_window& imported) noexcept;
    void drop(imported_window* imported) noexcept;
    void drop_unpublished() noexcept;
    bool is_idle_full() const;
    void show() const noexcept;

    std::int64_t _last_look = 0; // at all idle windows
};

std::span<const std::shared_ptr<mapped_region>> regions_of(const imported_window& imported)
{
    return imported.sources != nullptr ? std::span(imported.sources->regions)
                                       : std::span<const std::shared_ptr<mapped_region>>();
}

// About what is kept for a window besides its memory: the layout, the plan, and what is known of each source. A peer
// that shows a page may describe it by millions of entries.
std::uint64_t kept_bytes(const imported_window& imported)
{
    const layout& described = *imported.described;
    return 2 * described.entries().size_bytes() +
           described.num_sources() * (sizeof(layout_bounds) + sizeof(std::byte*) + sizeof(shm_place));
}

importer& importer::instance()
{
    // Never destroyed: destructors that run later may destroy keys.
    static importer& owner = *[] {
        auto* const made = new importer;
        hold_over_fork<[]() -> std::mutex& { return instance().lock; }>();
        return made;
    }();
    return owner;
}

// Of whoever has the process number in the key now.
result<peer_file> open_records(const shm_key& key)
{
    return peer_file::open(key.owner.pid, key.records_fd, key.records_inode, O_RDONLY);
}

// What was opened before by the process number belongs to the process in the key.
result<void> check_owner(const shm_key& key)
{
    const auto status = status_of_process(key.owner.pid);
    if (!status || status->start_time != key.owner.start_time) {
        return fail(errc::invalid_param,
                    std::format("process number {} now belongs to another process", key.owner.pid));
    }
    return {};
}

result<std::shared_ptr<const shm_peer>> importer::find_peer(const shm_key& key)
{
    const auto known = peers.find({key.owner.pid, key.owner.start_time, key.records_inode});
    const auto peer  = known == peers.end() ? nullptr : known->second.lock();
    if (peer == nullptr) {
        return add_peer(key);
    }
    // A program that closed the descriptor may get keys of other windows. What else of the peer is kept does without.
    if (!peer->records.is_there()) {
        auto records = UCXL_TRY(open_records(key));
        UCXL_TRY(check_owner(key));
        peer->records = std::move(records);
    }
    return peer;
}

result<std::shared_ptr<const shm_peer>> importer::add_peer(const shm_key& key)
{
    auto created = std::make_shared<shm_peer>(UCXL_TRY(open_records(key)), key.owner.pid);
    board_place place{};
    if (created->records.read(0, std::as_writable_bytes(std::span(&place, 1)))) {
        // Passes are shared only with processes of which the kernel tells the end.
        if (auto board = peer_board::open(key.owner.pid, place); board && created->process.is_watched()) {
            created->board = std::move(*board);
            created->passes.emplace(created->board->board());
        }
    }
    UCXL_TRY(check_owner(key));
    peers[{key.owner.pid, key.owner.start_time, key.records_inode}] = created;
    return created;
}

// Calls attempt() until it returns true, because the owner may be changing what is read. Returns false if it keeps
// changing it, or ended while it did.
template <typename Attempt>
bool try_between_changes(const shm_peer& owner, Attempt&& attempt)
{
    constexpr unsigned tries     = 1000; // it changes them within some microseconds, but may have lost its core
    constexpr std::int64_t limit = 50'000'000;
    const std::int64_t begin     = clock_tick();
    for (unsigned i = 0; i < tries && clock_tick() - begin < limit; ++i) {
        if (attempt()) {
            return true;
        }
        if (i % 16 == 8 && owner.process.has_ended()) {
            return false;
        }
        sched_yield();
    }
    return false;
}

// Reads header and places into the contents again until they are of one binding. Each part is read after the one
// before: the counter, the places, the counter, and last the generation, which says whose they were.
result<void> read_one_binding(const shm_peer& owner, const shm_key& key, std::span<std::byte> contents)
{
    const auto read = [&](std::uint64_t at, auto& value) {
        return owner.records.read(key.record_offset + at, std::as_writable_bytes(std::span(&value, 1)));
    };
    const char* fault  = nullptr;
    const auto attempt = [&] {
        shm_record_header header{};
        std::uint64_t binding = 0, generation = 0;
        if (!read(0, header) || header.generation != key.generation) {
            fault = "the record is of another window";
            return true;
        }
        const std::uint64_t end = record_places_end(std::min(header.num_sources, limits::max_sources));
        if (end > contents.size()) {
            fault = "the number of sources in the record is out of range";
            return true;
        }
        if (header.binding % 2 != 0) {
            return false;
        }
        const auto places = contents.first(end).subspan(sizeof(header));
        if (!owner.records.read(key.record_offset + sizeof(header), places) ||
            !read(offsetof(shm_record_header, binding), binding) ||
            !read(offsetof(shm_record_header, generation), generation)) {
            fault = "the record could not be read";
            return true;
        }
        std::memcpy(contents.data(), &header, sizeof(header));
        return binding == header.binding && generation == header.generation;
    };
    if (!try_between_changes(owner, attempt)) {
        return fail(errc::no_resource, "the owner keeps changing the record, or ended while it did");
    }
    return fault == nullptr ? result<void>() : fail(errc::malformed, fault);
}

result<shm_record> importer::read_record(const shm_peer& from, const shm_key& key) const
{
    if (from.records.length() < key.record_offset + key.record_length) {
        return fail(errc::malformed, "the record is behind the end of its file");
    }
    std::vector<std::byte> contents(key.record_length);
    if (!from.records.read(key.record_offset, contents)) {
        return fail(errc::malformed, "the record could not be read");
    }
    UCXL_TRY(read_one_binding(from, key, contents));
    return unpack_record(contents, key);
}

result<void> importer::make_room(std::uint64_t length)
{
    const std::uint64_t limit = lay_shm_limits().map_bytes;
    const auto have_bytes     = [&] { return length <= limit - std::min(limit, bytes.all); };
    const auto have_regions   = [&] { return bytes.regions < lay_shm_limits().map_regions; };
    while (!(have_bytes() && have_regions()) && !idle.empty()) {
        drop(idle.front());
    }
    if (!have_regions()) {
        return fail(errc::exceeds_limit, std::format("{} regions of peers are mapped, which is the limit "
                                                     "(UCX_LAY_SHM_MAP_REGIONS)",
                                                     bytes.regions));
    }
    return have_bytes() ? result<void>()
                        : fail(errc::exceeds_limit,
                               std::format("{} bytes of peers are mapped, and {} more exceed the limit of {} "
                                           "(UCX_LAY_SHM_MAP_LIMIT)",
                                           bytes.all, length, limit));
}

result<std::shared_ptr<mapped_region>> importer::map_memory(const imported_window& of_window, const shm_place& place)
{
    UCXL_TRY(make_room(place.length));
    const auto file = UCXL_TRY(peer_file::open(of_window.key.owner.pid, place.fd, place.inode, O_RDWR, place.device));
    if (file.keeps_its_memory()) {
        auto memory = UCXL_TRY(map_peer_memory(file, place.file_offset, place.length));
        return std::make_shared<mapped_region>(std::move(memory), std::nullopt, of_window.owner, bytes);
    }
    if (lay_shm_limits().maps_unsealed == 0) {
        return fail(errc::invalid_param, "the file of a peer's memory may lose pages (UCX_LAY_SHM_MAP_UNSEALED)");
    }
    auto memory = UCXL_TRY(map_peer_region(file, place.file_offset, place.length));
    auto guard  = UCXL_TRY(guarded_range::create(memory.start(), memory.length()));
    return std::make_shared<mapped_region>(std::move(memory), std::move(guard), of_window.owner, bytes);
}

bool is_cut(const mapped_region& mapped)
{
    return mapped.guard && mapped.guard->was_cut();
}

result<std::shared_ptr<mapped_region>> importer::find_region(const imported_window& of_window, const shm_place& place)
{
    auto& known = regions[{of_window.owner.get(), place.device, place.inode, place.file_offset, place.length}];
    // A file that was cut may be as long as before, but what is mapped of it no longer shows it.
    if (auto mapped = known.lock(); mapped && !is_cut(*mapped)) {
        return mapped;
    }
    auto created = UCXL_TRY(map_memory(of_window, place));
    known        = created;
    return created;
}

std::uint64_t binding_of(const imported_window& imported)
{
    const auto* const counter = imported.record + offsetof(shm_record_header, binding);
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(counter), __ATOMIC_ACQUIRE);
}

// The owner may write them at the same time.
void copy_words(std::span<shm_place> places, const std::byte* from)
{
    static_assert(sizeof(shm_place) % sizeof(std::uint64_t) == 0);
    const auto* const words = reinterpret_cast<const std::uint64_t*>(from);
    std::array<std::uint64_t, sizeof(shm_place) / sizeof(std::uint64_t)> copied;
    for (std::size_t place = 0; place < places.size(); ++place) {
        for (std::size_t i = 0; i < copied.size(); ++i) {
            copied[i] = __atomic_load_n(words + place * copied.size() + i, __ATOMIC_RELAXED);
        }
        places[place] = std::bit_cast<shm_place>(copied);
    }
}

std::byte* address_of_block(const layout& layout, std::span<std::byte* const> bases)
{
    return layout.is_contiguous() && !layout.is_empty() ? bases[layout.root().source] + layout.root().offset : nullptr;
}

// A base address may lie outside the memory; only the described bytes are known to lie inside.
std::byte* to_address(const mapped_region& mapped, const shm_place& place)
{
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(mapped.memory.start()) +
                                        static_cast<std::uint64_t>(place.base));
}

// The places were checked.
result<std::unique_ptr<const mapped_sources>>
importer::map_sources(const imported_window& of_window, std::uint64_t binding, std::span<const shm_place> places)
{
    auto made     = std::make_unique<mapped_sources>();
    made->binding = binding;
    made->bases.resize(places.size());
    for (std::size_t source = 0; source < places.size(); ++source) {
        const shm_place& place = places[source];
        if (place.length == 0) {
            continue;
        }
        auto mapped           = UCXL_TRY(find_region(of_window, place));
        made->bases[source]   = to_address(*mapped, place);
        made->may_lose_memory = made->may_lose_memory || mapped->guard;
        made->regions.push_back(std::move(mapped));
    }
    std::ranges::sort(made->regions);
    const auto repeated = std::ranges::unique(made->regions);
    made->regions.erase(repeated.begin(), repeated.end());
    made->contiguous = address_of_block(*of_window.described, made->bases);
    return made;
}

void importer::set_sources(const imported_window& to, std::unique_ptr<const mapped_sources> sources)
{
    to.mapped.store(sources.get());
    to.sources.swap(sources);
    if (sources != nullptr) {
        wait_for_readers();
    }
}

result<void> importer::add_memory(imported_window& to, const shm_record& record)
{
    auto plan = UCXL_TRY(pack_plan::compile(record.layout));
    set_sources(to, UCXL_TRY(map_sources(to, record.header.binding, record.places)));
    to.plan = std::move(plan);
    return {};
}

// Of the program that made the key: another one in its place has no such file, because execve(2) closes it.
result<void> watch_memory(const shm_peer& owner, const shm_key& key)
{
    if (!owner.memory) {
        auto memory = UCXL_TRY(watched_memory::open(key.owner.pid));
        UCXL_TRY(open_records(key));
        owner.memory = std::move(memory);
    }
    return {};
}

// Copies one byte to learn whether the kernel copies from that process to this one.
result<void> try_copy(const imported_window& from)
{
    // Nothing else tells that its number did not come to mean another process: each operation asks.
    if (!from.owner->process.is_watched()) {
        return fail(errc::unsupported, "the kernel does not tell when the process ends (pidfd_open)");
    }
    UCXL_TRY(watch_memory(*from.owner, from.key));
    const block_cursor at(*from.described);
    if (at.at_end()) {
        return fail(errc::malformed, "the window is empty");
    }
    const placed_block block    = at.block();
    const std::uint64_t address = base_in_owner(from, block.source) + static_cast<std::uint64_t>(block.offset);
    std::byte byte;
    const iovec local{&byte, 1}, remote{reinterpret_cast<void*>(address), 1};
    if (process_vm_readv(from.key.owner.pid, &local, 1, &remote, 1, 0) != 1) {
        return fail(errc::invalid_param,
                    std::format("memory of process {} cannot be copied: {}", from.key.owner.pid, std::strerror(errno)));
    }
    if (has_lost_owner(from)) {
        return fail(errc::invalid_param, std::format("process {} became another program", from.key.owner.pid));
    }
    return {};
}

result<std::unique_ptr<imported_window>> map_record(const shm_key& key, std::shared_ptr<const shm_peer> owner,
                                                    const shm_record& record)
{
    const std::uint64_t length = record_places_end(record.header.num_sources);
    auto pages                 = UCXL_TRY(map_peer_pages(owner->records, key.record_offset, length));
    auto created    = std::make_unique<imported_window>(key, std::move(owner), record.layout, std::move(pages));
    created->record = created->record_pages.start() + key.record_offset % page_length();
    return created;
}

result<imported_window*> importer::import(const shm_key& key)
{
    auto peer    = UCXL_TRY(find_peer(key));
    auto record  = UCXL_TRY(read_record(*peer, key));
    auto created = UCXL_TRY(map_record(key, std::move(peer), record));
    UCXL_TRY(key.access == shm_access::mapping ? add_memory(*created, record) : try_copy(*created));
    auto* const window = created.get();
    std::list<imported_window*> place{window};
    windows.emplace(name_of(key), std::move(created));
    window->position = place.begin();
    used.splice(used.end(), place);
    count_used(*window);
    return window;
}

bool is_usable(const imported_window& known, const shm_key& key)
{
    return known.key == key && is_published(known);
}

void importer::forget_ended() noexcept
{
    const auto is_expired = [](const auto& pair) { return pair.second.expired(); };
    std::erase_if(peers, is_expired);
    std::erase_if(regions, is_expired);
}

void importer::add_use(imported_window& known) noexcept
{
    if (known.users++ == 0) {
        remove_from_idle(known);
    }
}

imported_window* importer::find(const shm_key& key) noexcept
{
    const std::lock_guard guard(lock);
    const auto known = windows.find(name_of(key));
    if (known == windows.end() || !is_usable(*known->second, key)) {
        return nullptr;
    }
    add_use(*known->second);
    return known->second.get();
}

result<imported_window*> importer::acquire(const shm_key& key)
{
    UCXL_TRY(check_key(key));
    const std::lock_guard guard(lock);
    if (const auto known = windows.find(name_of(key)); known != windows.end()) {
        if (!is_usable(*known->second, key)) {
            return fail(errc::malformed, "the window of the key is gone, or never matched the key");
        }
        add_use(*known->second);
        return known->second.get();
    }
    auto created = import(key);
    forget_ended();
    show();
    return created;
}

void importer::count_used(const imported_window& counted) noexcept
{
    for (const auto& each : regions_of(counted)) {
        each->add_used();
    }
}

void importer::count_idle(const imported_window& counted) noexcept
{
    for (const auto& each : regions_of(counted)) {
        each->remove_used();
    }
}

void importer::remove_from_idle(imported_window& imported) noexcept
{
    used.splice(used.end(), idle, imported.position);
    bytes.idle -= kept_bytes(imported);
    count_used(imported);
}

// Only for an idle window.
void importer::drop(imported_window* imported) noexcept
{
    bytes.idle -= kept_bytes(*imported);
    idle.erase(imported->position);
    windows.erase(name_of(imported->key));
}

bool importer::is_idle_full() const
{
    const auto& limits = lay_shm_limits();
    return idle.size() > limits.idle_windows || bytes.idle > limits.idle_bytes;
}

// The oldest one each time, and all of them once in each tick of the kernel's clock: a rendezvous comes here for each
// message.
void importer::drop_unpublished() noexcept
{
    while (!idle.empty() && !is_published(*idle.front())) {
        drop(idle.front());
    }
    if (const std::int64_t now = clock_tick(); std::exchange(_last_look, now) != now) {
        for (auto next = idle.begin(); next != idle.end();) {
            imported_window* const looked = *next++;
            if (!is_published(*looked)) {
                drop(looked);
            }
        }
    }
}

// Words of a page that is there: a rendezvous comes here for each message.
void importer::show() const noexcept
{
    const auto [num_windows, num_idle, num_regions, num_bytes] = count();
    memory_figures::show_peers(num_windows, num_idle, num_regions, num_bytes);
}

void importer::release(imported_window* imported) noexcept
{
    const std::lock_guard guard(lock);
    if (--imported->users > 0) {
        return;
    }
    idle.splice(idle.end(), used, imported->position);
    bytes.idle += kept_bytes(*imported);
    count_idle(*imported);
    while (!idle.empty() && is_idle_full()) {
        drop(idle.front());
    }
    drop_unpublished();
    show();
}

// As the owner wrote them, all of one binding. Nothing if it keeps changing them, or the window ended.
std::optional<std::vector<shm_place>> read_places(const imported_window& imported, std::uint64_t& binding)
{
    std::vector<shm_place> places(imported.described->num_sources());
    const auto read_whole = [&] {
        binding = binding_of(imported);
        if (binding % 2 != 0) {
            return false;
        }
        copy_words(places, imported.record + sizeof(shm_record_header));
        std::atomic_thread_fence(std::memory_order_acquire);
        return binding_of(imported) == binding;
    };
    // If the window ended, they may be those of another one.
    return try_between_changes(*imported.owner, read_whole) && is_published(imported) ? std::optional(std::move(places))
                                                                                      : std::nullopt;
}

bool importer::bind_anew(const imported_window& imported)
{
    std::uint64_t binding = 0;
    const auto places     = read_places(imported, binding);
    if (!places) {
        return false;
    }
    if (imported.sources->binding == binding) {
        return true; // another thread was here before
    }
    auto sources = check_places(*imported.described, *places, shm_access::mapping).and_then([&] {
        return map_sources(imported, binding, *places);
    });
    if (!sources) {
        ucs_debug("lay_shm: a window that its owner bound anew: %s", sources.error().message.c_str());
        return false;
    }
    // Those from before end in set_sources().
    for (const auto& each : (*sources)->regions) {
        each->add_used();
    }
    count_idle(imported);
    set_sources(imported, std::move(*sources));
    return true;
}

// The owner has bound the window anew. Returns false if its memory cannot be reached.
bool importer::follow(const imported_window& imported)
{
    const std::lock_guard guard(lock);
    const bool is_done = bind_anew(imported);
    forget_ended(); // an owner that goes on to new memory would leave a name of each region behind
    return is_done;
}

void importer::drop_idle() noexcept
{
    const std::lock_guard guard(lock);
    while (!idle.empty()) {
        drop(idle.front());
    }
    show();
}

} // namespace

bool is_published(const imported_window& imported)
{
    const auto* generation = reinterpret_cast<const std::uint64_t*>(imported.record);
    return __atomic_load_n(generation, __ATOMIC_ACQUIRE) == imported.key.generation;
}

namespace
{

// In a reader section. A file that may lose pages is touched next.
bool prepare_sources(const mapped_sources& sources)
{
    if (sources.may_lose_memory) {
        guarded_range::renew_handler();
    }
    return !has_lost_memory(sources);
}

} // namespace

// As in test/models/key_record.pml. Published is asked last, too: if the record is still that of the key, the counter
// that was read before is that of its window.
bool is_usable_now(const imported_window& imported)
try {
    if (!is_published(imported)) {
        return false;
    }
    bool is_present = false;
    bool is_ready   = false;
    {
        const reader_section section;
        const mapped_sources& sources = sources_of(imported);
        is_present                    = sources.binding == binding_of(imported);
        is_ready                      = is_present && prepare_sources(sources);
    }
    if (!is_present && importer::instance().follow(imported)) {
        const reader_section section;
        is_ready = prepare_sources(sources_of(imported));
    }
    return is_ready && is_published(imported);
} catch (const std::bad_alloc&) {
    return false;
}

bool has_lost_memory(const mapped_sources& sources)
{
    return sources.may_lose_memory &&
           std::ranges::any_of(sources.regions, [](const auto& each) { return is_cut(*each); });
}

bool is_owner_alive(const imported_window& imported)
{
    return imported.owner->process.is_alive();
}

bool is_exported(const imported_window& imported)
{
    return is_published(imported) && imported.owner->is_alive();
}

// A program that closed the descriptor of the memory has to find the records' file each time: another program in the
// owner's place has none.
bool has_lost_owner(const imported_window& imported)
try {
    const watched_memory& memory = *imported.owner->memory;
    return memory.has_ended() && (memory.is_watched() || !open_records(imported.key) || !check_owner(imported.key));
} catch (const std::bad_alloc&) {
    return true;
}

std::uint64_t base_in_owner(const imported_window& imported, std::uint32_t source)
{
    const std::byte* const place =
        imported.record + sizeof(shm_record_header) + source * sizeof(shm_place) + offsetof(shm_place, base);
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(place), __ATOMIC_RELAXED);
}

offered_passes* passes_of_owner(const imported_window& imported)
{
    auto& passes = imported.owner->passes;
    return passes ? &*passes : nullptr;
}

bool is_owner_gone(const imported_window& imported)
{
    return imported.owner->process.has_ended() || imported.owner->board->has_left_owner();
}

result<imported_window*> import_window(const shm_key& key)
{
    return importer::instance().acquire(key);
}

imported_window* find_imported(const shm_key& key) noexcept
{
    return importer::instance().find(key);
}

void release_window(imported_window* imported) noexcept
{
    importer::instance().release(imported);
}

void drop_idle_imports() noexcept
{
    importer::instance().drop_idle();
}

import_counts count_imports()
{
    importer& imports = importer::instance();
    const std::lock_guard guard(imports.lock);
    return imports.count();
}

} // namespace ucxl
