// One opened device file: the context of a program, its objects by handle, and its event channels.
//
// Invariant: when it ends, nothing it made is left on the device; objects go newest first, as those that others need
// are older.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "event_file.h"
#include "kernel_device.h"
#include "mailbox.h"
#include "softhca/shim/interpose/descriptor_table.h"
#include "uobject.h"

namespace ucxl::softhca
{

inline constexpr unsigned completion_vectors = 4;

class device_file : public std::enable_shared_from_this<device_file>
{
public:
    device_file(fabric& device, kernel_host& outside, descriptor_table& descriptors, function_id function,
                std::uint16_t uid);
    ~device_file();
    device_file(const device_file&)            = delete;
    device_file& operator=(const device_file&) = delete;

    // A command of this context: 0, or what the kernel makes of its status.
    template <typename In, typename Out>
    int run(mailbox<In>& in, prm::storage<Out>& out)
    {
        return run_as(uid, in, out);
    }

    template <typename In>
    int run(mailbox<In>& in)
    {
        prm::storage<prm::any_output> out;
        return run_as(uid, in, out);
    }

    // A command of the kernel: memory regions are its own, and cost what it takes to register memory (--profile).
    template <typename In, typename Out>
    int run_as_kernel(mailbox<In>& in, prm::storage<Out>& out)
    {
        return run_as(0, in, out);
    }

    template <typename In>
    int run_as_kernel(mailbox<In>& in)
    {
        prm::storage<prm::any_output> out;
        return run_as(0, in, out);
    }

    // In a child of fork(), before anything is made: the same context, whose objects stay the parent's. Theirs and ours
    // never have the same handle.
    void inherit(const device_file& parents);

    // The number the next object gets if it is added.
    std::uint32_t next_handle();
    void add(std::uint32_t handle, std::unique_ptr<uobject> object);
    uobject* find(std::uint32_t handle) const;
    int remove(uobject& object);       // destroys it first: 0 or an errno
    void erase(const uobject& object); // when it is destroyed

    // A channel and the descriptor that the program has of it; the one behind a descriptor, null where there is none of
    // this context.
    void add_channel(const std::shared_ptr<event_file>& channel);
    std::shared_ptr<event_file> channel(std::int64_t fd) const;
    void close_channel(event_file& channel);

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
    bool has_context = false;
    bool may_devx    = false;
    std::shared_ptr<event_file> async_events; // of objects that do not name a channel

private:
    template <typename In, typename Out>
    int run_as(std::uint16_t who, mailbox<In>& in, prm::storage<Out>& out)
    {
        if (!in.fits()) {
            return EINVAL;
        }
        in.set(In::uid, who);
        return error_of(device.command(function, who, in.bytes(), out.bytes));
    }

    bool release_round();

    std::vector<std::unique_ptr<uobject>> _objects; // by handle
    std::vector<std::shared_ptr<event_file>> _channels;
    std::uint64_t _serials     = 0;
    std::uint32_t _lowest_free = 0; // no handle below it is free
};

} // namespace ucxl::softhca
