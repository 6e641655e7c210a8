// An open device file: the context of a program, its objects by handle, and its event channels.
//
// Invariant: its destructor leaves none of its objects on the device. Newer objects go first, because they may refer to
// older ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "descriptor_table.h"
#include "event_file.h"
#include "kernel_host.h"
#include "mailbox.h"
#include "uobject.h"

namespace ucxl::softhca
{

inline constexpr unsigned completion_vectors = 4;

class device_file : public std::enable_shared_from_this<device_file>
{
public:
    device_file(fabric& model, kernel_host& process, descriptor_table& table, function_id number,
                std::uint16_t context_uid);
    ~device_file();
    device_file(const device_file&)            = delete;
    device_file& operator=(const device_file&) = delete;

    // Sends a command of this context: 0, or the errno of its status.
    template <typename In, typename Out>
    int run(mailbox<In>& input, prm::storage<Out>& output)
    {
        return run_as(uid, input, output);
    }

    template <typename In>
    int run(mailbox<In>& input)
    {
        prm::storage<prm::any_output> output;
        return run_as(uid, input, output);
    }

    // Sends a command of the kernel, which owns memory regions. It costs the time of a registration (--times).
    template <typename In, typename Out>
    int run_as_kernel(mailbox<In>& input, prm::storage<Out>& output)
    {
        return run_as(0, input, output);
    }

    template <typename In>
    int run_as_kernel(mailbox<In>& input)
    {
        prm::storage<prm::any_output> output;
        return run_as(0, input, output);
    }

    // In a child of fork(), before any object is made: takes over the context. Its objects stay the parent's. Their
    // handles and ours never collide.
    void inherit(const device_file& parents);

    // The handle of the next object.
    std::uint32_t next_handle();
    void add(std::uint32_t handle, std::unique_ptr<uobject> object);
    uobject* find(std::uint32_t handle) const;
    int remove(uobject& object);       // destroys it first: 0 or an errno
    void erase(const uobject& object); // after it was destroyed

    // add_channel() registers the program's descriptor of the channel. channel() finds a channel of this context by its
    // descriptor; null when there is none.
    void add_channel(const std::shared_ptr<event_file>& channel);
    std::shared_ptr<event_file> channel(std::int64_t fd) const;
    void close_channel(event_file& channel);

    // If the context was cut off from the device (the card was removed, or it recovered from a failure): ends its event
    // channels. Its objects can only be destroyed from then on.
    void notice_cut_off();
    bool is_cut_off() const { return _cut_off; }

    template <typename Visit>
    void for_each(Visit visit) const
    {
        for (const auto& object : _objects) {
            if (object != nullptr) {
                visit(*object);
            }
        }
    }

    fabric& device;
    kernel_host& outside;
    descriptor_table& descriptors;
    const function_id function;
    const std::uint16_t uid;
    const std::uint8_t incarnation; // of the function when the file was opened
    bool has_context = false;
    bool may_devx    = false;
    std::shared_ptr<event_file> async_events; // for objects that do not name a channel

private:
    template <typename In, typename Out>
    int run_as(std::uint16_t sender, mailbox<In>& input, prm::storage<Out>& output)
    {
        if (!input.fits()) {
            return EINVAL;
        }
        input.set(In::uid, sender);
        return error_of(device.command(function, sender, input.bytes(), output.bytes));
    }

    std::size_t num_keys() const;
    bool release_round();

    std::vector<std::unique_ptr<uobject>> _objects; // by handle
    std::vector<std::shared_ptr<event_file>> _channels;
    std::uint64_t _serials     = 0;
    std::uint32_t _lowest_free = 0; // no handle below it is free
    bool _cut_off              = false;
};

} // namespace ucxl::softhca
