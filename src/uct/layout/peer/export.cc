#include "export.h"

#include "board_file.h"
#include "record_file.h"

#include "ucs/window/window.h"

#include "abi/log.h"
#include "sys/fork.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>

#include <sys/random.h>

namespace ucxl
{

namespace
{

// The part of a window that is needed after the reader section.
struct exported_window {
    std::byte* address   = nullptr; // null: there is no window, or it has no such key
    std::uint64_t length = 0;
    pack_plan_ptr plan;
    std::vector<std::byte*> bases;
    std::vector<region_ptr> regions;
    std::shared_ptr<window_attachment> attachment;

    const layout& described() const { return *plan->source_layout(); }
};

shm_access access_of(const window_binding& binding)
{
    return binding.is_shared() ? shm_access::mapping : shm_access::process;
}

bool is_exportable(const window_binding& binding, shm_access access, std::size_t min_block)
{
    const layout& described    = *binding.plan->source_layout();
    const std::uint64_t blocks = described.blocks().count;
    return access == access_of(binding) && blocks != 0 && !binding.is_indirect() &&
           described.packed_length() / blocks >= min_block && !binding.is_withdrawn();
}

// Most windows have no key for a given access; nothing of them is copied.
exported_window find_window(const void* address, shm_access access, std::size_t min_block)
{
    const reader_section guard;
    const window* const window = window_registry::instance().find(address, 1);
    if (window == nullptr || !is_exportable(window->binding(), access, min_block)) {
        return {};
    }
    const window_binding& binding = window->binding();
    return {window->address(), window->length(), binding.plan, binding.bases, binding.regions, binding.attachment};
}

// A key of a window that ended must not find its number where its record was, whatever record is there now: so numbers
// that are likely in a record are none of a window. Far from the last number, so that no window has 0.
std::uint64_t random_generation()
{
    std::uint64_t number = 0;
    return getrandom(&number, sizeof(number), 0) == sizeof(number) ? number / 2 : 0;
}

// One exporter per process: a forked child must not write into the file of its parent.
struct exporter {
    std::mutex lock;
    process_identity owner{};
    std::shared_ptr<record_file> records;
    std::uint64_t last_generation = 0;

    static exporter& instance();
    result<void> prepare();

private:
    static result<std::unique_ptr<board_file>> add_board(record_file& file);
};

exporter& exporter::instance()
{
    // Never destroyed: destructors that run later may release windows.
    static exporter& owner = *[] {
        window_registry::hold_lock_over_fork();
        auto* const made = new exporter;
        hold_over_fork<[]() -> std::mutex& { return instance().lock; }>();
        return made;
    }();
    return owner;
}

// Peers look for its place in the first record.
result<std::unique_ptr<board_file>> exporter::add_board(record_file& file)
{
    auto created            = UCXL_TRY(board_file::create());
    const board_place place = created->place();
    UCXL_TRY(file.add(std::as_bytes(std::span(&place, 1))));
    return created;
}

result<void> exporter::prepare()
{
    // A program that closed the descriptor of the file may have another window.
    if (records != nullptr && owner.pid == own_pid() && records->has_descriptor()) {
        return {};
    }
    auto file       = UCXL_TRY(record_file::create());
    auto made       = add_board(*file);
    records         = std::move(file);
    owner           = process_identity::own();
    last_generation = random_generation();
    // Without a board, peers do their passes alone. In a child, that of the parent stays mapped: a worker that the
    // child inherited may look at it.
    if (made) {
        board_of_process.store(made->release(), std::memory_order_release);
    } else {
        ucs_debug("peers do their passes alone: %s", made.error().message.c_str());
    }
    return {};
}

// The record of a window is its attachment.
struct exported_record {
    std::shared_ptr<record_file> file;
    shm_key key{};
    mutable std::uint64_t binding = 0; // of the record's header; under the exporter's lock

    exported_record()                                  = default;
    exported_record(const exported_record&)            = delete;
    exported_record& operator=(const exported_record&) = delete;
    // The lock must not be held here.
    ~exported_record()
    {
        if (file != nullptr && is_own()) {
            const std::lock_guard guard(exporter::instance().lock);
            file->erase(key.record_offset, key.record_length);
        }
    }

    // A record from before a fork belongs to the parent.
    bool is_own() const { return key.owner.pid == own_pid(); }
};

using record_ptr = std::shared_ptr<const exported_record>;

// An empty one for a source without bytes.
shm_place place_in(const region* held, const std::byte* base)
{
    if (held == nullptr) {
        return {};
    }
    return {.base        = base - held->start(),
            .inode       = held->inode(),
            .file_offset = held->file_offset(),
            .length      = held->length(),
            .fd          = held->fd(),
            .device      = static_cast<std::uint32_t>(held->device())};
}

shm_place place_in_process(const std::byte* base)
{
    shm_place place{};
    place.base = reinterpret_cast<std::intptr_t>(base);
    return place;
}

// Of a source of the window.
shm_place place_of(std::span<std::byte* const> bases, std::span<const region_ptr> regions, std::size_t source)
{
    return regions.empty() ? place_in_process(bases[source]) : place_in(regions[source].get(), bases[source]);
}

result<std::vector<std::byte>> make_record(const exported_window& exported, std::uint64_t generation)
{
    const std::size_t length = record_length(exported.described());
    if (length > max_record_length) {
        return fail(errc::exceeds_limit, "the layout is too long for a remote key");
    }
    shm_record_header header{};
    header.generation  = generation;
    header.num_sources = exported.described().num_sources();
    std::vector<shm_place> places(header.num_sources);
    for (std::size_t source = 0; source < places.size(); ++source) {
        places[source] = place_of(exported.bases, exported.regions, source);
    }
    std::vector<std::byte> record(length);
    return pack_record(header, places, exported.described(), record).transform([&] { return std::move(record); });
}

result<record_ptr> add_record(exporter& exporter, const exported_window& exported, shm_access access)
{
    auto bytes    = UCXL_TRY(make_record(exported, exporter.last_generation + 1));
    auto created  = std::make_shared<exported_record>();
    const auto at = UCXL_TRY(exporter.records->add(bytes));
    created->file = exporter.records;
    created->key  = {.magic         = shm_key::form,
                     .access        = access,
                     .owner         = exporter.owner,
                     .address       = reinterpret_cast<std::uintptr_t>(exported.address),
                     .length        = exported.length,
                     .generation    = ++exporter.last_generation,
                     .records_inode = exporter.records->inode(),
                     .record_offset = at,
                     .record_length = static_cast<std::uint32_t>(bytes.size()),
                     .records_fd    = exporter.records->fd()};
    return created;
}

// Call it under the lock.
record_ptr known_record(const window_attachment& attachment)
{
    auto known = std::static_pointer_cast<const exported_record>(attachment.value);
    return known != nullptr && known->is_own() ? known : nullptr;
}

result<record_ptr> record_of(exporter& exporter, const exported_window& exported, shm_access access)
{
    if (auto known = known_record(*exported.attachment)) {
        return known;
    }
    auto added = add_record(exporter, exported, access);
    if (added) {
        exported.attachment->value = *added;
    }
    return added;
}

// A rendezvous packs the keys of its window with each message. Nothing of the window is copied if it has no such key,
// or has it already. Call it under the lock, or, if it may answer nothing, without.
std::optional<shm_key> quick_key_of(const void* address, shm_access access, std::size_t min_block, bool is_locked)
{
    const reader_section guard;
    const window* const window = window_registry::instance().find(address, 1);
    if (window == nullptr || !is_exportable(window->binding(), access, min_block)) {
        return no_access_key();
    }
    if (!is_locked) {
        return std::nullopt;
    }
    const auto* const known = static_cast<const exported_record*>(window->binding().attachment->value.get());
    return known != nullptr && known->is_own() ? std::optional(known->key) : std::nullopt;
}

// Looks the window up under the lock, so that its record has the bases of the last rebinding.
result<shm_key> key_of(const void* address, shm_access access, std::size_t min_block)
{
    if (const auto none = quick_key_of(address, access, min_block, false)) {
        return *none;
    }
    exporter& owner = exporter::instance();
    exported_window exported; // outlives the lock, with everything left of the window
    const std::lock_guard guard(owner.lock);
    if (const auto known = quick_key_of(address, access, min_block, true)) {
        return *known;
    }
    exported = find_window(address, access, min_block);
    if (exported.address == nullptr) {
        return no_access_key(); // it ended meanwhile
    }
    UCXL_TRY(owner.prepare());
    const auto record = UCXL_TRY(record_of(owner, exported, access));
    return record->key;
}

shm_key export_or_none(const void* address, shm_access access, std::size_t min_block)
{
    const auto key = key_of(address, access, min_block);
    if (!key) {
        ucs_debug("no remote key for the window at %p: %s", address, key.error().message.c_str());
        return no_access_key();
    }
    return *key;
}

} // namespace

void hold_exports_over_fork()
{
    exporter::instance();
}

shm_key no_access_key()
{
    shm_key key{};
    key.magic = shm_key::form;
    return key;
}

shm_key export_window(const void* address)
{
    return export_or_none(address, shm_access::mapping, 0);
}

shm_key export_process_window(const void* address, std::size_t min_block)
{
    return export_or_none(address, shm_access::process, min_block);
}

std::uint64_t generation_of_exported_window(const void* address) noexcept
{
    const std::lock_guard guard(exporter::instance().lock);
    const auto key = quick_key_of(address, shm_access::mapping, 0, true);
    return key ? key->generation : 0;
}

void update_exported_window(const void* address) noexcept
{
    std::shared_ptr<const void> ended; // outlives the lock
    const std::lock_guard guard(exporter::instance().lock);
    const reader_section section;
    const window* const changed = window_registry::instance().find(address, 1);
    if (changed == nullptr) {
        return;
    }
    const window_binding& binding = changed->binding();
    const auto record             = known_record(*binding.attachment);
    if (record == nullptr) {
        return;
    }
    // A region may be withdrawn while a window is bound to it; windows over it are looked for afterwards.
    if (record->key.access != access_of(binding) || binding.is_withdrawn()) {
        ended = std::exchange(binding.attachment->value, nullptr);
        return;
    }
    const auto write = [&](std::uint64_t at, const auto& value) {
        record->file->change(record->key.record_offset + at, std::as_bytes(std::span(&value, 1)));
    };
    constexpr std::uint64_t counter = offsetof(shm_record_header, binding);
    write(counter, ++record->binding);
    std::uint64_t at = sizeof(shm_record_header);
    for (std::size_t source = 0; source < binding.bases.size(); ++source, at += sizeof(shm_place)) {
        write(at, place_of(binding.bases, binding.regions, source));
    }
    write(counter, ++record->binding);
}

void withdraw_exported_window(const void* address) noexcept
{
    std::shared_ptr<const void> record; // outlives the lock
    const std::lock_guard guard(exporter::instance().lock);
    const reader_section section;
    if (const window* const window = window_registry::instance().find(address, 1)) {
        record = std::exchange(window->binding().attachment->value, nullptr);
    }
}

} // namespace ucxl
