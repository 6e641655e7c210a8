#include "kernel_device.h"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "device_file.h"
#include "softhca/shim/sysfs/device_identity.h"
#include "softhca/shim/uverbs/dispatch.h"

namespace ucxl::softhca
{

namespace
{

std::vector<sysfs_function> functions_of(fabric& device)
{
    std::vector<sysfs_function> functions;
    for (unsigned i = 0; i < device.functions(); i++) {
        functions.push_back({.record = device.function(static_cast<function_id>(i)), .firmware = firmware_text});
    }
    return functions;
}

} // namespace

struct kernel::state {
    state(fabric& of, kernel_host& around) : device(of), outside(around), tree(functions_of(of)) {}

    fabric& device;
    kernel_host& outside;
    std::mutex lock; // of everything below
    descriptor_table descriptors;
    sysfs_tree tree;
    std::uint16_t last_uid = 0;

    // 0 is the kernel's own.
    std::uint16_t next_uid() { return ++last_uid != 0 ? last_uid : ++last_uid; }

    void drop(int fd)
    {
        const descriptor_entry entry = descriptors.remove(fd);
        if (entry.channel == nullptr || entry.channel->descriptors != 0) {
            return;
        }
        if (const auto owner = entry.owner.lock()) {
            owner->close_channel(*entry.channel);
        }
    }
};

kernel::kernel(fabric& device, kernel_host& outside) : _state(std::make_unique<state>(device, outside))
{
}

kernel::~kernel() = default;

std::optional<int> kernel::open(std::string_view path, int flags) noexcept
try {
    if (_state == nullptr) {
        return std::nullopt;
    }
    const sysfs_node* const node = _state->tree.find(path);
    if (node == nullptr || node->kind != sysfs_kind::device) {
        return std::nullopt;
    }
    const auto which = static_cast<function_id>(node->number - uverbs_device_number(0));
    const std::scoped_lock held(_state->lock);
    const int fd = _state->outside.open_device_file(which, flags);
    if (fd < 0) {
        errno = -fd;
        return -1;
    }
    auto file =
        std::make_shared<device_file>(_state->device, _state->outside, _state->descriptors, which, _state->next_uid());
    _state->descriptors.add(fd, {.file = std::move(file), .channel = {}, .owner = {}});
    return fd;
} catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return -1;
}

bool kernel::owns(int fd) const noexcept
{
    return _state != nullptr && _state->descriptors.has(fd);
}

std::optional<dev_t> kernel::device_number(int fd) const noexcept
{
    if (!owns(fd)) {
        return std::nullopt;
    }
    const std::scoped_lock held(_state->lock);
    const auto file = _state->descriptors.find(fd).file;
    return file == nullptr ? std::nullopt : std::optional(uverbs_device_number(file->function));
}

int kernel::ioctl(int fd, unsigned long request, void* argument) noexcept
{
    int error = ENOTTY;
    try {
        if (_state != nullptr) {
            const std::scoped_lock held(_state->lock);
            if (const auto file = _state->descriptors.find(fd).file) {
                error = dispatch_ioctl(*file, request, reinterpret_cast<std::uintptr_t>(argument));
            }
        }
    } catch (const std::bad_alloc&) {
        error = ENOMEM;
    }
    if (error == 0) {
        return 0;
    }
    errno = error;
    return -1;
}

ssize_t kernel::write(int fd, const void* bytes, std::size_t length) noexcept
{
    int error = EINVAL;
    try {
        if (_state != nullptr) {
            const std::scoped_lock held(_state->lock);
            if (const auto file = _state->descriptors.find(fd).file) {
                error = dispatch_write(*file, reinterpret_cast<std::uintptr_t>(bytes), length);
            }
        }
    } catch (const std::bad_alloc&) {
        error = ENOMEM;
    }
    if (error == 0) {
        return static_cast<ssize_t>(length);
    }
    errno = error;
    return -1;
}

void kernel::closing(int fd) noexcept
{
    if (owns(fd)) {
        const std::scoped_lock held(_state->lock);
        _state->drop(fd);
    }
}

void kernel::duplicated(int from, int to) noexcept
{
    if (_state == nullptr) {
        return;
    }
    const std::scoped_lock held(_state->lock);
    descriptor_entry entry = _state->descriptors.find(from);
    _state->drop(to);
    if (entry.file != nullptr || entry.channel != nullptr) {
        _state->descriptors.add(to, std::move(entry));
    }
}

void kernel::forget() noexcept
{
    // What is open would be released by its destructor, and the lock may be held by a thread that is not here.
    (void)_state.release();
}

bool kernel::adopt(kernel& parents) noexcept
try {
    if (_state == nullptr || parents._state == nullptr) {
        return false;
    }
    const std::scoped_lock held(_state->lock);
    const std::unique_lock theirs(parents._state->lock, std::try_to_lock);
    if (!theirs.owns_lock()) {
        return false;
    }
    std::map<const device_file*, std::shared_ptr<device_file>> heirs;
    descriptor_table& before = parents._state->descriptors;
    before.for_each([&](int fd, const descriptor_entry& entry) {
        if (entry.file == nullptr || !before.has(fd)) {
            return;
        }
        std::shared_ptr<device_file>& heir = heirs[entry.file.get()];
        if (heir == nullptr) {
            heir = std::make_shared<device_file>(_state->device, _state->outside, _state->descriptors,
                                                 entry.file->function, _state->next_uid());
            heir->inherit(*entry.file);
        }
        _state->descriptors.add(fd, {.file = heir, .channel = {}, .owner = {}});
        before.hide(fd);
    });
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void kernel::disown(int fd) noexcept
{
    if (_state != nullptr) {
        _state->descriptors.hide(fd);
    }
}

const sysfs_tree& kernel::files() const noexcept
{
    return _state->tree;
}

} // namespace ucxl::softhca
