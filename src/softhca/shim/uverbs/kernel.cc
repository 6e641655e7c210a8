#include "kernel.h"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "dispatch.h"
#include "softhca/shim/objects/device_file.h"
#include "softhca/shim/sysfs/device_identity.h"
#include "softhca/shim/sysfs/live_files.h"

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

// Ends every call that may allocate: out of memory is ENOMEM, and no exception leaves.
template <typename Call>
int error_of_call(Call call) noexcept
{
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
}

// Answers as a system call does.
template <typename Result>
Result answer(int error, Result result)
{
    if (error == 0) {
        return result;
    }
    errno = error;
    return -1;
}

} // namespace

struct kernel::state {
    state(fabric& model, kernel_host& process)
        : device(model), outside(process), live(model), tree(functions_of(model), &live)
    {
    }

    fabric& device;
    kernel_host& outside;
    std::mutex lock; // for everything below
    descriptor_table descriptors;
    live_files live;
    sysfs_tree tree;
    std::uint16_t last_uid = 0;

    // 0 is the kernel's.
    std::uint16_t next_uid() { return ++last_uid != 0 ? last_uid : ++last_uid; }

    std::shared_ptr<device_file> make_file(function_id function)
    {
        return std::make_shared<device_file>(device, outside, descriptors, function, next_uid());
    }

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
{
    if (_state == nullptr) {
        return std::nullopt;
    }
    std::optional<int> opened;
    const int error = error_of_call([&] {
        const sysfs_node* const node = _state->tree.find(path);
        if (node == nullptr || node->kind != sysfs_kind::device) {
            return 0;
        }
        const auto function = static_cast<function_id>(node->number - uverbs_device_number(0));
        const std::scoped_lock held(_state->lock);
        const int fd = _state->outside.open_device_file(function, flags);
        if (fd < 0) {
            return -fd;
        }
        _state->descriptors.add(fd, {.file = _state->make_file(function), .channel = {}, .owner = {}});
        opened = fd;
        return 0;
    });
    return answer(error, opened);
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

// Runs `dispatch` with the device file of a descriptor, under the lock: 0 or an errno, `no_file` when there is none.
template <typename Dispatch>
int kernel::call(int fd, int no_file, Dispatch dispatch) noexcept
{
    if (_state == nullptr) {
        return no_file;
    }
    return error_of_call([&] {
        const std::scoped_lock held(_state->lock);
        const auto file = _state->descriptors.find(fd).file;
        if (file == nullptr) {
            return no_file;
        }
        file->notice_cut_off();
        return dispatch(*file);
    });
}

int kernel::ioctl(int fd, unsigned long request, void* argument) noexcept
{
    const int error = call(fd, ENOTTY, [=](device_file& file) {
        return dispatch_ioctl(file, request, reinterpret_cast<std::uintptr_t>(argument));
    });
    return answer(error, 0);
}

ssize_t kernel::write(int fd, const void* bytes, std::size_t length) noexcept
{
    const int error = call(fd, EINVAL, [=](device_file& file) {
        return dispatch_write(file, reinterpret_cast<std::uintptr_t>(bytes), length);
    });
    return answer(error, static_cast<ssize_t>(length));
}

// As ib_uverbs_event_read() in drivers/infiniband/core/uverbs_main.c: EIO once the queue is closed and empty.
ssize_t kernel::was_read(int fd, std::span<const std::byte> events) noexcept
{
    if (_state == nullptr) {
        return static_cast<ssize_t>(events.size());
    }
    const std::scoped_lock held(_state->lock);
    const descriptor_entry entry = _state->descriptors.find(fd);
    if (entry.channel == nullptr) {
        return static_cast<ssize_t>(events.size());
    }
    const std::size_t left = ends_behind(events, entry.channel->format());
    if (left < events.size() || events.empty()) {
        if (const auto owner = entry.owner.lock()) {
            owner->notice_cut_off();
        }
    }
    return answer(left == 0 ? EIO : 0, static_cast<ssize_t>(left));
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
    // The destructor would release the open files, and a thread that does not exist here may hold the lock.
    (void)_state.release();
}

bool kernel::adopt(kernel& parents) noexcept
{
    if (_state == nullptr || parents._state == nullptr) {
        return false;
    }
    const int error = error_of_call([&] {
        const std::scoped_lock held(_state->lock);
        const std::unique_lock theirs(parents._state->lock, std::try_to_lock);
        if (!theirs.owns_lock()) {
            return EBUSY;
        }
        std::map<const device_file*, std::shared_ptr<device_file>> heirs;
        descriptor_table& before = parents._state->descriptors;
        before.for_each([&](int fd, const descriptor_entry& entry) {
            if (entry.file == nullptr || !before.has(fd)) {
                return;
            }
            std::shared_ptr<device_file>& heir = heirs[entry.file.get()];
            if (heir == nullptr) {
                heir = _state->make_file(entry.file->function);
                heir->inherit(*entry.file);
            }
            _state->descriptors.add(fd, {.file = heir, .channel = {}, .owner = {}});
            before.hide(fd);
        });
        return 0;
    });
    return error == 0;
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
