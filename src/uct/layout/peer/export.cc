#include "export.h"

#include "record_file.h"

#include "ucs/window/window.h"

#include <ucs/debug/log_def.h>

#include <mutex>

#include <sys/stat.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

// What is needed of a window after its reader section.
struct exported_window {
    std::byte* address   = nullptr; // null: there is no window, or no such key of it
    std::uint64_t length = 0;
    pack_plan_ptr plan;
    std::vector<std::byte*> bases;
    std::shared_ptr<const layout_memory> memory;
    std::shared_ptr<window_attachment> attachment;

    const layout& described() const { return *plan->source_layout(); }
};

bool is_exportable(const window_binding& of, shm_access access, std::size_t min_block)
{
    const shm_access possible  = of.memory != nullptr ? shm_access::mapping : shm_access::process;
    const layout& described    = *of.plan->source_layout();
    const std::uint64_t blocks = described.blocks().count;
    return access == possible && blocks != 0 && described.packed_length() / blocks >= min_block;
}

// Most windows have no key of one access, and nothing of them is copied.
exported_window find_window(const void* address, shm_access access, std::size_t min_block)
{
    const reader_section guard;
    const window* const in = window_registry::instance().find(address, 1);
    if (in == nullptr || !is_exportable(in->binding(), access, min_block)) {
        return {};
    }
    const window_binding& binding = in->binding();
    return {in->address(), in->length(), binding.plan, binding.bases, binding.memory, binding.attachment};
}

// One for each process: a child that was forked must not write into the file of its parent.
struct exporter {
    std::mutex lock;
    process_identity owner{};
    std::shared_ptr<record_file> records;
    std::uint64_t last_generation = 0;

    static exporter& instance();
    result<void> prepare();
};

exporter& exporter::instance()
{
    static exporter& made = *new exporter; // windows may be released by destructors that run later
    return made;
}

result<void> exporter::prepare()
{
    if (records != nullptr && owner.pid == own_pid()) {
        return {};
    }
    auto file = UCXL_TRY(record_file::create());
    records   = std::move(file);
    owner     = process_identity::own();
    return {};
}

// The record of a window: its attachment.
struct exported_record {
    std::shared_ptr<record_file> file;
    pid_t owner              = 0;
    std::uint64_t generation = 0;
    std::uint64_t offset     = 0;
    std::uint32_t length     = 0;

    exported_record()                                  = default;
    exported_record(const exported_record&)            = delete;
    exported_record& operator=(const exported_record&) = delete;
    // Not under the lock.
    ~exported_record()
    {
        if (file != nullptr && owner == own_pid()) {
            const std::lock_guard guard(exporter::instance().lock);
            file->erase(offset, length);
        }
    }
};

using record_ptr = std::shared_ptr<const exported_record>;

std::vector<std::int64_t> bases_of(const exported_window& of)
{
    std::vector<std::int64_t> bases;
    for (const std::byte* base : of.bases) {
        bases.push_back(of.memory != nullptr ? of.memory->file_offset(base) : reinterpret_cast<std::intptr_t>(base));
    }
    return bases;
}

result<std::vector<std::byte>> make_record(const exported_window& of, std::uint64_t generation)
{
    const std::size_t length = record_length(of.described());
    if (length > max_record_length) {
        return fail(errc::exceeds_limit, "the layout is too long for a remote key");
    }
    shm_record_header header{};
    header.generation  = generation;
    header.num_sources = of.described().num_sources();
    if (of.memory != nullptr) {
        struct stat about{};
        if (fstat(of.memory->fd(), &about) != 0) {
            return fail(errc::invalid_param, "the memory has no file any more");
        }
        header.memory_inode  = about.st_ino;
        header.memory_length = of.memory->length();
        header.memory_fd     = of.memory->fd();
    }
    std::vector<std::byte> record(length);
    return pack_record(header, bases_of(of), of.described(), record).transform([&] { return std::move(record); });
}

result<record_ptr> add_record(exporter& in, const exported_window& of)
{
    auto bytes       = UCXL_TRY(make_record(of, in.last_generation + 1));
    auto made        = std::make_shared<exported_record>();
    const auto at    = UCXL_TRY(in.records->add(bytes));
    made->owner      = in.owner.pid;
    made->generation = ++in.last_generation;
    made->offset     = at;
    made->length     = static_cast<std::uint32_t>(bytes.size());
    made->file       = in.records;
    return made;
}

// Under the lock. The record of before a fork is not this process's.
record_ptr known_record(const window_attachment& of)
{
    auto known = std::static_pointer_cast<const exported_record>(of.value);
    return known != nullptr && known->owner == own_pid() ? known : nullptr;
}

result<record_ptr> record_of(exporter& in, const exported_window& of)
{
    if (auto known = known_record(*of.attachment)) {
        return known;
    }
    auto added = add_record(in, of);
    if (added) {
        of.attachment->value = *added;
    }
    return added;
}

// The window is looked up under the lock, so that its record has the bases of the last rebinding.
result<shm_key> key_of(const void* address, shm_access access, std::size_t min_block)
{
    exporter& in = exporter::instance();
    exported_window of; // goes after the lock, with all that may be left of the window
    const std::lock_guard guard(in.lock);
    of = find_window(address, access, min_block);
    if (of.address == nullptr) {
        return no_access_key();
    }
    UCXL_TRY(in.prepare());
    const auto record = UCXL_TRY(record_of(in, of));
    return shm_key{.magic         = shm_key::form,
                   .access        = access,
                   .owner         = in.owner,
                   .address       = reinterpret_cast<std::uintptr_t>(of.address),
                   .length        = of.length,
                   .generation    = record->generation,
                   .records_inode = in.records->inode(),
                   .record_offset = record->offset,
                   .record_length = record->length,
                   .records_fd    = in.records->fd()};
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

void update_exported_window(const void* address) noexcept
{
    const std::lock_guard guard(exporter::instance().lock);
    const reader_section section;
    const window* const changed = window_registry::instance().find(address, 1);
    if (changed == nullptr || changed->binding().memory != nullptr) {
        return;
    }
    const window_binding& binding = changed->binding();
    const auto record             = known_record(*binding.attachment);
    if (record == nullptr) {
        return;
    }
    std::uint64_t at = record->offset + sizeof(shm_record_header);
    for (const std::byte* base : binding.bases) {
        const auto value = reinterpret_cast<std::uintptr_t>(base);
        record->file->change(at, std::as_bytes(std::span(&value, 1)));
        at += sizeof(value);
    }
}

void withdraw_exported_window(const void* address) noexcept
{
    std::shared_ptr<const void> record; // goes after the lock
    const std::lock_guard guard(exporter::instance().lock);
    const reader_section section;
    if (const window* const of = window_registry::instance().find(address, 1)) {
        record = std::exchange(of->binding().attachment->value, nullptr);
    }
}

} // namespace ucxl
