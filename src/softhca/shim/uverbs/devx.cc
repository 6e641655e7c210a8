// DEVX: commands of the program itself, the objects and memory it makes with them, and their events.
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "call.h"
#include "devx_command.h"
#include "methods.h"
#include "prm/object.h"
#include "softhca/shim/objects/access_flags.h"
#include "softhca/shim/objects/devx.h"
#include "softhca/shim/objects/verbs.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint16_t header_bytes = 16; // of every command

int run_general(uverbs_call& call)
{
    devx_command command;
    if (const int error = command.take(call, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);
        error != 0) {
        return error;
    }
    if (!call.file.may_devx && !needs_no_devx(command.opcode())) {
        return EINVAL;
    }
    return is_general_command(command.opcode()) ? command.run(call) : EINVAL;
}

// Doorbell pages are allocated one by one and known by their numbers; there is no table of them.
int query_uar(uverbs_call&)
{
    return EINVAL;
}

int query_event_queue(uverbs_call& call)
{
    std::uint32_t vector = 0;
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, vector); error != 0) {
        return error;
    }
    return vector < completion_vectors ? call.write(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, vector) : EINVAL;
}

int register_umem(uverbs_call& call)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    std::uint64_t address = 0;
    std::uint64_t length  = 0;
    std::uint64_t pages   = ~std::uint64_t{0};
    std::uint32_t access  = 0;
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, address); error != 0) {
        return error;
    }
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, length); error != 0) {
        return error;
    }
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, pages); error != 0) {
        return error;
    }
    const std::uint32_t allowed = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
                                  IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_RELAXED_ORDERING;
    if (const int error = call.read_flags(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, allowed, access); error != 0) {
        return error;
    }
    if (const int error = check_access_flags(access); error != 0) {
        return error;
    }
    if (call.has(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)) {
        return EOPNOTSUPP;
    }
    if (pages == 0 || length == 0 || address + length < address) {
        return EINVAL;
    }
    pinned_memory memory;
    if (const int error = pinned_memory::pin(call.file, address, length, access, memory, call.file.uid); error != 0) {
        return error;
    }
    const std::uint32_t id = memory.id();
    call.create(std::make_unique<devx_memory>(std::move(memory)));
    return call.write(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, id);
}

int deregister_umem(uverbs_call& call)
{
    return call.destroy(*call.object<devx_memory>(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE));
}

constexpr std::array general_attributes{
    input_from(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, header_bytes),
    output_from(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, header_bytes),
};

constexpr std::array uar_attributes{
    input<std::uint32_t>(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX),
    output<std::uint32_t>(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX),
};

constexpr std::array event_queue_attributes{
    input<std::uint32_t>(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC),
    output<std::uint32_t>(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN),
};

constexpr std::array register_attributes{
    new_handle(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE),
    input<std::uint64_t>(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR),
    input<std::uint64_t>(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN),
    flags(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS),
    constant(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, presence::optional),
    descriptor(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, presence::optional),
    output<std::uint32_t>(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID),
};

constexpr std::array deregister_attributes{
    handle(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, object_kind::devx_umem),
};

devx_id made_id(const devx_command& command)
{
    const auto input  = *prm::const_view<prm::general_object_in>::over(command.input);
    const auto output = *prm::const_view<prm::general_object_out>::over(command.output);
    devx_id id{.number = output.get(prm::general_object_out::obj_id)};
    if (command.opcode() == prm::command::create_general_object) {
        id.type = std::to_underlying(input.get(prm::general_object_in::obj_type));
    }
    return id;
}

int create_object(uverbs_call& call)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    devx_command command;
    if (const int error = command.take(call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT);
        error != 0) {
        return error;
    }
    const devx_class* const kind = find_devx_class(command.opcode());
    if (kind == nullptr || !use_umems(command)) {
        return EINVAL;
    }
    // The object exists before its answer is copied, and is destroyed again if that fails.
    const int error = command.run(call);
    if (prm::const_view<prm::any_output>::over(command.output)->get(prm::any_output::status) ==
        prm::command_status::ok) {
        call.create(std::make_unique<devx_object>(call.file, *kind, made_id(command)));
    }
    return error;
}

int destroy_object(uverbs_call& call)
{
    return call.destroy(*call.object<devx_object>(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));
}

// The object that a DEVX command is about. An object of verbs is treated as a DEVX object of its kind.
struct target {
    const devx_class* kind = nullptr;
    devx_id id{};
};

target qp_target(const qp_object& object)
{
    const auto create = object.target != nullptr ? prm::command::create_dct : prm::command::create_qp;
    return {.kind = find_devx_class(create), .id = {.number = object.qpn}};
}

target target_of(const uobject& object)
{
    switch (object.kind()) {
    case object_kind::devx_object: {
        const auto& devx = static_cast<const devx_object&>(object);
        return {.kind = &devx.kind_of, .id = devx.id};
    }
    case object_kind::cq:
        return {.kind = find_devx_class(prm::command::create_cq),
                .id   = {.number = static_cast<const cq_object&>(object).cqn}};
    case object_kind::qp:
        return qp_target(static_cast<const qp_object&>(object));
    case object_kind::srq:
        return {.kind = find_devx_class(prm::command::create_rmp),
                .id   = {.number = static_cast<const srq_object&>(object).srqn}};
    default:
        return {};
    }
}

// Whether the command is one of those allowed, and about the object of the handle.
bool is_about(uverbs_call& call, std::uint16_t handle, devx_command& command,
              std::span<const prm::command> devx_class::* allowed)
{
    const target named = target_of(*call.object<uobject>(handle));
    return named.kind != nullptr && std::ranges::contains(named.kind->*allowed, command.opcode()) &&
           id_in_command(command.header(), command.input) == named.id && use_umems(command);
}

int run_on_object(uverbs_call& call, std::uint16_t handle, std::uint16_t input, std::uint16_t output,
                  std::span<const prm::command> devx_class::* allowed)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    devx_command command;
    if (const int error = command.take(call, input, output); error != 0) {
        return error;
    }
    return is_about(call, handle, command, allowed) ? command.run(call) : EINVAL;
}

int modify_object(uverbs_call& call)
{
    return run_on_object(call, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
                         MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, &devx_class::modify);
}

int query_object(uverbs_call& call)
{
    return run_on_object(call, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
                         MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, &devx_class::query);
}

int alloc_answers(uverbs_call& call)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    if (const int error = call.create_channel(event_format::devx_answer); error != 0) {
        return error;
    }
    const std::int64_t fd = call.made_channel()->channel().reader;
    return call.write(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, fd);
}

// The command is executed at once, and its answer waits in the channel. As in devx.c of the kernel's driver, a command
// that the device refuses has an answer, too, and nothing is sent when too many answers are unread.
int query_object_later(uverbs_call& call)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    std::shared_ptr<event_file> channel;
    if (const int error = call.channel_of(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, event_format::devx_answer, channel);
        error != 0) {
        return error;
    }
    std::uint64_t wr_id  = 0;
    std::uint64_t length = 0;
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, wr_id); error != 0) {
        return error;
    }
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, length); error != 0) {
        return error;
    }
    devx_command command;
    if (const int error = call.read_all(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, command.input); error != 0) {
        return error;
    }
    if (length > UINT16_MAX || !is_about(call, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, command, &devx_class::query)) {
        return EINVAL;
    }
    command.output.assign(length, std::byte{0});
    (void)command.send(call);
    std::vector<std::byte> answer(sizeof(wr_id) + length);
    std::memcpy(answer.data(), &wr_id, sizeof(wr_id));
    std::ranges::copy(command.output, answer.begin() + sizeof(wr_id));
    return call.file.outside.write_answer(channel->channel(), answer);
}

constexpr std::array answers_attributes{new_descriptor(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE)};

constexpr std::array query_later_attributes{
    handle(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, object_kind::any_devx),
    input_from(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, header_bytes),
    constant(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN),
    descriptor(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD),
    input<std::uint64_t>(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID),
};

constexpr std::array create_attributes{
    new_handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE),
    input_from(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, header_bytes),
    output_from(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, header_bytes),
};

constexpr std::array destroy_attributes{handle(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, object_kind::devx_object)};

constexpr std::array modify_attributes{
    handle(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, object_kind::any_devx),
    input_from(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, header_bytes),
    output_from(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, header_bytes),
};

constexpr std::array query_attributes{
    handle(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, object_kind::any_devx),
    input_from(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, header_bytes),
    output_from(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, header_bytes),
};

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

// With an eventfd of the program its events are counted there, and do not come to the channel.
int redirect(uverbs_call& call, std::shared_ptr<event_file>& channel)
{
    std::uint32_t fd = 0;
    if (!call.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM)) {
        return 0;
    }
    if (const int error = call.read(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, fd); error != 0) {
        return error;
    }
    const event_channel kept = call.file.outside.keep_event_fd(static_cast<int>(fd));
    if (kept.reader < 0) {
        return -kept.reader;
    }
    auto counter                = std::make_shared<event_file>(call.file.outside, kept, event_format::devx_count);
    counter->subscribed_through = channel.get();
    channel                     = std::move(counter);
    return 0;
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
    // Events without an object are not modelled.
    auto* const object = call.object<devx_object>(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
    if (object == nullptr) {
        return EOPNOTSUPP;
    }
    if (const int error = redirect(call, channel); error != 0) {
        return error;
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
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, general_attributes, run_general},
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, uar_attributes, query_uar},
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, event_queue_attributes, query_event_queue},
    method_spec{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, register_attributes, register_umem},
    method_spec{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, deregister_attributes, deregister_umem},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, create_attributes, create_object},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, destroy_attributes, destroy_object},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, modify_attributes, modify_object},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, query_attributes, query_object},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, query_later_attributes,
                query_object_later},
    method_spec{MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, answers_attributes,
                alloc_answers},
    method_spec{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, alloc_attributes,
                alloc_channel},
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, subscribe_attributes, subscribe_events},
};

} // namespace

std::span<const method_spec> devx_methods()
{
    return methods;
}

} // namespace ucxl::softhca
