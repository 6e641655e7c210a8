#include "device_file.h"

#include <algorithm>
#include <utility>

namespace ucxl::softhca
{

device_file::device_file(fabric& model, kernel_host& process, descriptor_table& table, function_id number,
                         std::uint16_t context_uid)
    : device(model), outside(process), descriptors(table), function(number), uid(context_uid),
      incarnation(model.function(number).incarnation)
{
}

device_file::~device_file()
{
    if (const std::size_t left = num_keys(); left != 0) {
        device.count_left_keys(left);
    }
    while (release_round()) {
    }
    for (const auto& channel : _channels) {
        device.drop_channel(std::exchange(channel->number, 0));
        channel->close();
    }
}

void device_file::inherit(const device_file& parents)
{
    has_context  = parents.has_context;
    may_devx     = parents.may_devx;
    _lowest_free = static_cast<std::uint32_t>(parents._objects.size());
}

std::size_t device_file::num_keys() const
{
    std::size_t keys = 0;
    for_each([&](const uobject& object) { keys += object.is_key() ? 1 : 0; });
    return keys;
}

// Releases the objects that nothing refers to, newest first. Returns whether there were any.
bool device_file::release_round()
{
    std::vector<uobject*> newest_first;
    for (const auto& object : _objects) {
        if (object != nullptr) {
            newest_first.push_back(object.get());
        }
    }
    std::ranges::sort(newest_first, std::greater<>{}, &uobject::serial);
    bool released = false;
    for (uobject* const object : newest_first) {
        if (object->destroy() == 0) {
            erase(*object);
            released = true;
        }
    }
    return released;
}

std::uint32_t device_file::next_handle()
{
    while (find(_lowest_free) != nullptr) {
        _lowest_free++;
    }
    return _lowest_free;
}

void device_file::add(std::uint32_t handle, std::unique_ptr<uobject> object)
{
    if (handle >= _objects.size()) {
        _objects.resize(handle + 1);
    }
    object->handle   = handle;
    object->serial   = ++_serials;
    _objects[handle] = std::move(object);
}

uobject* device_file::find(std::uint32_t handle) const
{
    return handle < _objects.size() ? _objects[handle].get() : nullptr;
}

void device_file::erase(const uobject& object)
{
    const std::uint32_t handle = object.handle;
    _objects[handle].reset();
    _lowest_free = std::min(_lowest_free, handle);
}

int device_file::remove(uobject& object)
{
    const int error = object.destroy();
    if (error == 0) {
        erase(object);
    }
    return error;
}

void device_file::add_channel(const std::shared_ptr<event_file>& channel)
{
    _channels.push_back(channel);
    descriptors.add(channel->channel().reader, {.file = {}, .channel = channel, .owner = weak_from_this()});
}

std::shared_ptr<event_file> device_file::channel(std::int64_t fd) const
{
    const descriptor_entry entry = descriptors.find(fd);
    return entry.owner.lock().get() == this ? entry.channel : nullptr;
}

void device_file::close_channel(event_file& channel)
{
    for_each([&](uobject& object) { object.forget_channel(channel); });
    if (async_events.get() == &channel) {
        async_events.reset();
    }
    device.drop_channel(std::exchange(channel.number, 0));
    channel.close();
    std::erase_if(_channels, [&](const auto& open) { return open.get() == &channel; });
}

void device_file::notice_cut_off()
{
    if (_cut_off || !device.cut_off(function, incarnation)) {
        return;
    }
    _cut_off = true;
    while (!_channels.empty()) {
        const std::shared_ptr<event_file> channel = _channels.back();
        close_channel(*channel);
    }
}

} // namespace ucxl::softhca
