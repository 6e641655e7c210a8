#include "import.h"

#include "limits.h"

#include "sys/pages.h"
#include "ucs/layout/walk.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <format>
#include <map>
#include <mutex>
#include <tuple>

#include <fcntl.h>
#include <sys/uio.h>

namespace ucxl
{

// A process whose records can be read.
struct shm_peer {
    shm_peer(peer_file file, pid_t pid) : records(std::move(file)), process(pid) {}

    peer_file records;
    watched_process process;
    std::optional<peer_board> board{};
    mutable std::atomic<unsigned> passes_alone{0}; // in a row, of those that it could have shared

    // Asks the kernel once in each of its clock ticks. A number comes back only after all others, which is later.
    bool is_alive() const
    {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        const std::int64_t tick = now.tv_sec * 1'000'000'000 + now.tv_nsec;
        if (_seen_alive.load(std::memory_order_relaxed) == tick) {
            return true;
        }
        const bool is_alive = process.is_alive();
        if (is_alive) {
            _seen_alive.store(tick, std::memory_order_relaxed);
        }
        return is_alive;
    }

    bool still_has(const shm_key& key) const
    {
        std::uint64_t generation = 0;
        return records.read(key.record_offset, std::as_writable_bytes(std::span(&generation, 1))) &&
               generation == key.generation;
    }

private:
    mutable std::atomic<std::int64_t> _seen_alive{-1};
};

namespace
{

// The generation is unique in the memory of a process.
using window_name = std::tuple<std::int32_t, std::uint64_t, std::uint64_t, std::uint64_t>;
using peer_name   = std::tuple<std::int32_t, std::uint64_t, std::uint64_t>;

window_name name_of(const shm_key& key)
{
    return {key.owner.pid, key.owner.start_time, key.records_inode, key.generation};
}

struct importer {
    std::mutex lock;
    std::map<window_name, std::unique_ptr<imported_window>> windows;
    std::map<peer_name, std::weak_ptr<const shm_peer>> peers;
    std::list<imported_window*> idle; // oldest first
    std::list<imported_window*> used;
    std::uint64_t idle_bytes   = 0;
    std::uint64_t mapped_bytes = 0;

    static importer& instance();
    result<imported_window*> acquire(const shm_key& key);
    imported_window* find(const shm_key& key) noexcept;
    void release(imported_window* imported) noexcept;
    void drop_idle() noexcept;

private:
    result<std::shared_ptr<const shm_peer>> find_peer(const shm_key& key);
    void add_use(imported_window& known) noexcept;
    result<shm_record> read_record(const shm_peer& from, const shm_key& key) const;
    result<owned_mapping> map_memory(const shm_key& key, const shm_record& record);
    result<void> add_memory(imported_window& to, const shm_record& record);
    result<imported_window*> import(const shm_key& key);
    void remove_from_idle(imported_window& imported) noexcept;
    void drop(imported_window* imported) noexcept;
    bool is_idle_full() const;
};

importer& importer::instance()
{
    static importer& owner = *new importer; // never destroyed: destructors that run later may destroy keys
    return owner;
}

result<std::shared_ptr<const shm_peer>> importer::find_peer(const shm_key& key)
{
    auto& known = peers[{key.owner.pid, key.owner.start_time, key.records_inode}];
    if (auto peer = known.lock()) {
        return peer;
    }
    auto records = UCXL_TRY(peer_file::open(key.owner.pid, key.records_fd, key.records_inode, O_RDONLY));
    auto created = std::make_shared<shm_peer>(std::move(records), key.owner.pid);
    board_place place{};
    if (created->records.read(0, std::as_writable_bytes(std::span(&place, 1)))) {
        // Passes are shared only with processes of which the kernel tells the end.
        if (auto board = peer_board::open(key.owner.pid, place); board && created->process.is_watched()) {
            created->board = std::move(*board);
        }
    }
    // Checked after both were opened: then they belong to the process in the key.
    const auto status = status_of_process(key.owner.pid);
    if (!status || status->start_time != key.owner.start_time) {
        return fail(errc::invalid_param,
                    std::format("process number {} now belongs to another process", key.owner.pid));
    }
    known = created;
    return created;
}

result<shm_record> importer::read_record(const shm_peer& from, const shm_key& key) const
{
    if (from.records.length() < key.record_offset + key.record_length) {
        return fail(errc::malformed, "the record is behind the end of its file");
    }
    std::vector<std::byte> bytes(key.record_length);
    if (!from.records.read(key.record_offset, bytes)) {
        return fail(errc::malformed, "the record could not be read");
    }
    auto record = unpack_record(bytes, key);
    if (record && !from.still_has(key)) {
        return fail(errc::malformed, "the record was erased while it was read");
    }
    return record;
}

result<owned_mapping> importer::map_memory(const shm_key& key, const shm_record& record)
{
    const std::uint64_t limit = lay_shm_limits().map_bytes;
    const auto fits           = [&] { return record.header.memory_length <= limit - std::min(limit, mapped_bytes); };
    while (!fits() && !idle.empty()) {
        drop(idle.front());
    }
    if (!fits()) {
        return fail(errc::exceeds_limit, std::format("{} bytes of peers are mapped, and {} more exceed the limit of {} "
                                                     "(UCX_LAY_SHM_MAP_LIMIT)",
                                                     mapped_bytes, record.header.memory_length, limit));
    }
    const auto file =
        UCXL_TRY(peer_file::open(key.owner.pid, record.header.memory_fd, record.header.memory_inode, O_RDWR));
    return map_peer_memory(file, record.header.memory_length);
}

std::vector<std::byte*> to_addresses(const owned_mapping& mapping, std::span<const std::int64_t> offsets)
{
    std::vector<std::byte*> bases;
    for (const std::int64_t offset : offsets) {
        // A base address may lie outside the memory; only the described bytes are known to lie inside.
        bases.push_back(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(mapping.start()) +
                                                     static_cast<std::uint64_t>(offset)));
    }
    return bases;
}

std::byte* address_of_block(const layout& layout, std::span<std::byte* const> bases)
{
    return layout.is_contiguous() && !layout.is_empty() ? bases[layout.root().source] + layout.root().offset : nullptr;
}

result<void> importer::add_memory(imported_window& to, const shm_record& record)
{
    auto plan   = UCXL_TRY(pack_plan::compile(record.layout));
    auto memory = UCXL_TRY(map_memory(to.key, record));
    to.memory.emplace(std::move(memory));
    to.plan       = std::move(plan);
    to.bases      = to_addresses(*to.memory, record.bases);
    to.contiguous = address_of_block(*record.layout, to.bases);
    return {};
}

// Copies one byte to learn whether the kernel copies from that process to this one.
result<void> try_copy(const imported_window& from)
{
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
    return {};
}

result<std::unique_ptr<imported_window>> map_record(const shm_key& key, std::shared_ptr<const shm_peer> owner,
                                                    const shm_record& record)
{
    const std::uint64_t length = record_bases_end(record.header.num_sources);
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
    mapped_bytes += window->mapped_length();
    return window;
}

bool is_usable(const imported_window& known, const shm_key& key)
{
    return known.key == key && is_published(known);
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
    std::erase_if(peers, [](const auto& pair) { return pair.second.expired(); });
    return created;
}

void importer::remove_from_idle(imported_window& imported) noexcept
{
    used.splice(used.end(), idle, imported.position);
    idle_bytes -= imported.mapped_length();
}

// Only for an idle window.
void importer::drop(imported_window* imported) noexcept
{
    remove_from_idle(*imported);
    used.erase(imported->position);
    mapped_bytes -= imported->mapped_length();
    windows.erase(name_of(imported->key));
}

bool importer::is_idle_full() const
{
    const auto& limits = lay_shm_limits();
    return idle.size() > limits.idle_windows || idle_bytes > limits.idle_bytes;
}

void importer::release(imported_window* imported) noexcept
{
    const std::lock_guard guard(lock);
    if (--imported->users > 0) {
        return;
    }
    idle.splice(idle.end(), used, imported->position);
    idle_bytes += imported->mapped_length();
    while (!idle.empty() && (is_idle_full() || !is_published(*idle.front()))) {
        drop(idle.front());
    }
}

void importer::drop_idle() noexcept
{
    const std::lock_guard guard(lock);
    while (!idle.empty()) {
        drop(idle.front());
    }
}

} // namespace

bool is_published(const imported_window& imported)
{
    const auto* generation = reinterpret_cast<const std::uint64_t*>(imported.record);
    return __atomic_load_n(generation, __ATOMIC_ACQUIRE) == imported.key.generation;
}

bool is_owner_alive(const imported_window& imported)
{
    return imported.owner->process.is_alive();
}

bool is_exported(const imported_window& imported)
{
    return is_published(imported) && imported.owner->is_alive();
}

std::uint64_t base_in_owner(const imported_window& imported, std::uint32_t source)
{
    const auto* bases = reinterpret_cast<const std::uint64_t*>(imported.record + sizeof(shm_record_header));
    return __atomic_load_n(bases + source, __ATOMIC_RELAXED);
}

pass_board* board_of_owner(const imported_window& imported)
{
    return imported.owner->board ? &imported.owner->board->board() : nullptr;
}

// After so many passes alone in a row an owner is offered one of `period`. Several threads at once may lose a count.
constexpr unsigned patience = 4, period = 16;

bool may_owner_share(const imported_window& imported)
{
    if (!imported.owner->board) {
        return false;
    }
    auto& alone          = imported.owner->passes_alone;
    const unsigned count = alone.load(std::memory_order_relaxed);
    if (count < patience) {
        return true;
    }
    alone.store(patience + (count + 1 - patience) % period, std::memory_order_relaxed);
    return count == patience;
}

void note_pass(const imported_window& imported, bool was_shared)
{
    auto& alone          = imported.owner->passes_alone;
    const unsigned count = alone.load(std::memory_order_relaxed);
    // From the limit of may_owner_share() on, that function counts.
    alone.store(was_shared ? 0 : std::min(count + 1, patience + 1), std::memory_order_relaxed);
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
    return {imports.windows.size(), imports.idle.size(), imports.mapped_bytes};
}

} // namespace ucxl
