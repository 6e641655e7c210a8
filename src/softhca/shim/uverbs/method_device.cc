// Methods about the device itself: older commands, context, port, GIDs, and the channel of asynchronous events.
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "method_context.h"
#include "methods.h"
#include "softhca/shim/sysfs/files.h"
#include "softhca/shim/sysfs/port_attributes.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

int invoke_write(uverbs_call& call)
{
    std::uint64_t number = 0;
    if (const int error = call.read(UVERBS_ATTR_WRITE_CMD, number); error != 0) {
        return error;
    }
    if (number > UINT32_MAX) {
        return EINVAL;
    }
    const write_command* command = nullptr;
    if (const int error = find_write_command(static_cast<std::uint32_t>(number), command); error != 0) {
        return error;
    }
    if (call.length(UVERBS_ATTR_CORE_IN) < command->request_bytes ||
        call.length(UVERBS_ATTR_CORE_OUT) < command->response_bytes) {
        return ENOSPC;
    }
    return run_write_command(call, *command);
}

int query_port(uverbs_call& call)
{
    std::uint64_t port = 0;
    if (const int error = call.read(UVERBS_ATTR_QUERY_PORT_PORT_NUM, port); error != 0) {
        return error;
    }
    ib_uverbs_query_port_resp_ex response{};
    if (const int error = port_attributes(call.file, port, response); error != 0) {
        return error;
    }
    return call.write(UVERBS_ATTR_QUERY_PORT_RESP, response);
}

// There is no embedded switch, so nothing is known about a port's place in it.
int query_switch_port(uverbs_call& call)
{
    std::uint32_t port = 0;
    if (const int error = call.read(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, port); error != 0) {
        return error;
    }
    if (port != only_port) {
        return EINVAL;
    }
    const mlx5_ib_uapi_query_port response{};
    return call.write(MLX5_IB_ATTR_QUERY_PORT, response);
}

int no_data_direct(uverbs_call&)
{
    return ENODEV;
}

ib_uverbs_gid_entry default_gid(const device_file& file)
{
    ib_uverbs_gid_entry entry{};
    entry.gid[0]    = std::byteswap(default_gid_prefix);
    entry.gid[1]    = std::byteswap(file.device.function(file.function).port_guid);
    entry.gid_index = 0;
    entry.port_num  = only_port;
    entry.gid_type  = IB_UVERBS_GID_TYPE_IB;
    return entry;
}

int query_gid_entry(uverbs_call& call)
{
    std::uint64_t port  = 0;
    std::uint64_t index = 0;
    std::uint32_t flags = 0;
    if (const int error = call.read_flags(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, flags); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index); error != 0) {
        return error;
    }
    if (port != only_port || index >= gid_table_length) {
        return EINVAL;
    }
    return index != 0 ? ENODATA : call.write(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, default_gid(call.file));
}

int query_gid_table(uverbs_call& call)
{
    std::uint64_t entry_bytes = 0;
    std::uint32_t flags       = 0;
    if (const int error = call.read_flags(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, flags); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_bytes); error != 0) {
        return error;
    }
    const std::size_t room = call.length(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
    if (entry_bytes == 0 || entry_bytes > room || room / entry_bytes == 0) {
        return EINVAL;
    }
    // A caller with a longer entry than this side knows gets zeros behind.
    std::vector<std::byte> entry(std::max<std::size_t>(entry_bytes, sizeof(ib_uverbs_gid_entry)));
    const ib_uverbs_gid_entry known = default_gid(call.file);
    std::memcpy(entry.data(), &known, sizeof(known));
    if (const int error = call.write_bytes(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entry.data(), entry_bytes);
        error != 0) {
        return error;
    }
    const std::uint64_t entries = 1;
    return call.write(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, entries);
}

int alloc_async_events(uverbs_call& call)
{
    if (const int error = call.create_channel(event_format::async); error != 0) {
        return error;
    }
    const std::int64_t fd = call.made_channel()->channel().reader;
    if (const int error = call.write(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd); error != 0) {
        return error;
    }
    if (call.file.async_events == nullptr) {
        call.file.async_events = call.made_channel();
        call.file.device.route_async_events(call.made_channel()->route(only_port, 0));
    }
    return 0;
}

constexpr std::array invoke_write_attributes{
    constant(UVERBS_ATTR_WRITE_CMD),
    input_from(UVERBS_ATTR_CORE_IN, sizeof(std::uint32_t), presence::optional),
    output_from(UVERBS_ATTR_CORE_OUT, 0, presence::optional),
    driver_input,
    driver_output,
};

constexpr std::array get_context_attributes{
    output<std::uint32_t>(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, presence::optional),
    output<std::uint64_t>(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, presence::optional),
    driver_input,
    driver_output,
};

constexpr std::array query_context_attributes{
    output<std::uint32_t>(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, presence::optional),
    output<std::uint64_t>(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, presence::optional),
    output_from(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, 0, presence::mandatory),
};

constexpr std::array query_port_attributes{
    constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM),
    output_from(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(ib_uverbs_query_port_resp)),
};

constexpr std::array query_switch_port_attributes{
    input<std::uint32_t>(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM),
    output_from(MLX5_IB_ATTR_QUERY_PORT, sizeof(std::uint64_t)),
};

constexpr std::array data_direct_attributes{
    output_from(MLX5_IB_ATTR_GET_DATA_DIRECT_SYSFS_PATH, 0),
};

constexpr std::array gid_entry_attributes{
    constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT),
    constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
    flags(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, presence::mandatory),
    output_from(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(std::uint64_t)),
};

constexpr std::array gid_table_attributes{
    constant(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE),
    flags(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS),
    output_from(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0),
    output<std::uint64_t>(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES),
};

constexpr std::array async_event_attributes{new_descriptor(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, invoke_write_attributes, invoke_write},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, get_context_attributes, get_context},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, query_context_attributes, query_context},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, query_port_attributes, query_port},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, gid_entry_attributes, query_gid_entry},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, gid_table_attributes, query_gid_table},
    method_spec{UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, query_switch_port_attributes, query_switch_port},
    method_spec{UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_GET_DATA_DIRECT_SYSFS_PATH, data_direct_attributes,
                no_data_direct},
    method_spec{UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, async_event_attributes, alloc_async_events},
};

} // namespace

std::span<const method_spec> device_methods()
{
    return methods;
}

} // namespace ucxl::softhca
