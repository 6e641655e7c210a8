// Event channels of DEVX, and which events of which objects they get.
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <array>
#include <cstring>
#include <vector>

#include "call.h"
#include "methods.h"
#include "softhca/shim/objects/devx_object.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::size_t max_events = 200; // in one subscription

int alloc_channel(uverbs_call& call)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    std::uint32_t channel_flags = 0;
    if (const int error = call.read_flags(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS,
                                          MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA, channel_flags);
        error != 0) {
        return error;
    }
    const bool omit = (channel_flags & MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA) != 0;
    if (const int error = call.create_channel(omit ? event_format::devx : event_format::devx_data); error != 0) {
        return error;
    }
    const std::int64_t fd = call.made_channel()->channel().reader;
    return call.write(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, fd);
}

int find_channel(uverbs_call& call, std::shared_ptr<event_file>& channel)
{
    constexpr std::uint16_t id = MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE;
    return call.channel_of(id, event_format::devx, channel) == 0
               ? 0
               : call.channel_of(id, event_format::devx_data, channel);
}

int subscribe_events(uverbs_call& call)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    std::shared_ptr<event_file> channel;
    if (const int error = find_channel(call, channel); error != 0) {
        return error;
    }
    std::vector<std::byte> bytes;
    if (const int error = call.read_all(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, bytes); error != 0) {
        return error;
    }
    std::uint64_t cookie = 0;
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, cookie); error != 0) {
        return error;
    }
    if (bytes.size() % sizeof(std::uint16_t) != 0 || bytes.size() / sizeof(std::uint16_t) > max_events) {
        return EINVAL;
    }
    // Events of no object, and those told to an eventfd, are not modelled.
    auto* const object = call.object<devx_object>(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
    if (object == nullptr || call.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM)) {
        return EOPNOTSUPP;
    }
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint16_t)) {
        std::uint16_t type = 0;
        std::memcpy(&type, bytes.data() + at, sizeof(type));
        if (const int error = object->subscribe_channel(channel, type, cookie); error != 0) {
            return error;
        }
    }
    return 0;
}

constexpr std::array alloc_attributes{
    new_descriptor(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE),
    flags(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, presence::mandatory),
};

constexpr std::array subscribe_attributes{
    descriptor(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE),
    handle(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, object_kind::devx_object, presence::optional),
    input_from(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, sizeof(std::uint16_t)),
    input<std::uint64_t>(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, presence::optional),
    input<std::uint32_t>(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, presence::optional),
};

constexpr std::array methods{
    method_spec{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, alloc_attributes,
                alloc_channel},
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, subscribe_attributes, subscribe_events},
};

} // namespace

std::span<const method_spec> devx_event_methods()
{
    return methods;
}

} // namespace ucxl::softhca
