#include "shm_export.h"

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
    std::byte* address;
    std::uint64_t length;
    pack_plan_ptr plan;
    std::vector<std::byte*> bases;
    std::shared_ptr<const layout_memory> memory;
};

// One for each process: a child that was forked must not write into the file of its parent.
struct exporter {
    std::mutex lock;
    process_identity owner{};
    std::shared_ptr<record_file> records;

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
    if (records != nullptr && owner.pid == getpid()) {
        return {};
    }
    auto file = record_file::create();
    if (!file) {
        return std::unexpected(file.error());
    }
    records = std::move(*file);
    owner   = process_identity::own();
    return {};
}

// The record of a window's memory, as long as that memory.
struct exported_record {
    std::shared_ptr<record_file> file;
    pid_t owner          = 0;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;

    exported_record()                                  = default;
    exported_record(const exported_record&)            = delete;
    exported_record& operator=(const exported_record&) = delete;
    ~exported_record()
    {
        if (file != nullptr && owner == getpid()) {
            const std::lock_guard guard(exporter::instance().lock);
            file->erase(offset, length);
        }
    }
};

result<std::vector<std::byte>> make_record(const exported_window& of)
{
    struct stat about{};
    if (fstat(of.memory->fd(), &about) != 0) {
        return fail(errc::invalid_param, "the memory has no file any more");
    }
    const layout& source_layout = *of.plan->source_layout();
    const std::size_t length    = record_length(source_layout);
    if (length > max_record_length) {
        return fail(errc::exceeds_limit, "the layout is too long for a remote key");
    }
    const shm_record_header header{.generation    = of.memory->generation(),
                                   .memory_inode  = about.st_ino,
                                   .memory_length = of.memory->length(),
                                   .memory_fd     = of.memory->fd(),
                                   .num_sources   = source_layout.num_sources()};
    std::vector<std::int64_t> offsets;
    for (const std::byte* base : of.bases) {
        offsets.push_back(of.memory->file_offset(base));
    }
    std::vector<std::byte> record(length);
    return pack_record(header, offsets, source_layout, record).transform([&] { return std::move(record); });
}

result<std::shared_ptr<const exported_record>> add_record(exporter& in, const exported_window& of)
{
    auto bytes = make_record(of);
    if (!bytes) {
        return std::unexpected(bytes.error());
    }
    auto made     = std::make_shared<exported_record>();
    const auto at = in.records->add(*bytes);
    if (!at) {
        return std::unexpected(at.error());
    }
    made->owner  = in.owner.pid;
    made->offset = *at;
    made->length = static_cast<std::uint32_t>(bytes->size());
    made->file   = in.records;
    return made;
}

// Under the lock. The record of before a fork is not this process's.
result<std::shared_ptr<const exported_record>> record_of(exporter& in, const exported_window& of)
{
    auto& attached = of.memory->attachment();
    if (auto known = std::static_pointer_cast<const exported_record>(attached);
        known != nullptr && known->owner == in.owner.pid) {
        return known;
    }
    auto added = add_record(in, of);
    if (added) {
        attached = *added;
    }
    return added;
}

result<shm_key> key_of(const exported_window& of)
{
    exporter& in = exporter::instance();
    const std::lock_guard guard(in.lock);
    if (auto ready = in.prepare(); !ready) {
        return std::unexpected(ready.error());
    }
    const auto record = record_of(in, of);
    if (!record) {
        return std::unexpected(record.error());
    }
    return shm_key{.magic         = shm_key::form,
                   .is_mappable   = 1,
                   .owner         = in.owner,
                   .address       = reinterpret_cast<std::uintptr_t>(of.address),
                   .length        = of.length,
                   .generation    = of.memory->generation(),
                   .records_inode = in.records->inode(),
                   .record_offset = (*record)->offset,
                   .record_length = (*record)->length,
                   .records_fd    = in.records->fd()};
}

// Memory null: the window has none of its own, or there is no window.
exported_window find_window(const void* address)
{
    const reader_section guard;
    const window* const in = window_registry::instance().find(address, 1);
    if (in == nullptr) {
        return {};
    }
    const window_binding& binding = in->binding();
    return {in->address(), in->length(), binding.plan, binding.bases, binding.memory};
}

} // namespace

shm_key unmappable_key()
{
    shm_key key{};
    key.magic = shm_key::form;
    return key;
}

shm_key export_window(const void* address)
{
    const exported_window window = find_window(address);
    if (window.memory == nullptr) {
        return unmappable_key();
    }
    const auto key = key_of(window);
    if (!key) {
        ucs_debug("lay_shm: no remote key for the window at %p: %s", address, key.error().message.c_str());
        return unmappable_key();
    }
    return *key;
}

} // namespace ucxl
