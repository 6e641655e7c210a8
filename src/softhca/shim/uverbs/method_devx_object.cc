// DEVX objects: made, changed, read and ended with commands of the program itself.
#include <algorithm>
#include <array>

#include "call.h"
#include "methods.h"
#include "prm/object.h"
#include "softhca/shim/objects/devx_command.h"
#include "softhca/shim/objects/devx_object.h"
#include "softhca/shim/objects/qp_object.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint16_t header_bytes = 16;

devx_id made_id(const devx_command& command)
{
    const auto in  = *prm::const_view<prm::general_object_in>::over(command.in);
    const auto out = *prm::const_view<prm::general_object_out>::over(command.out);
    devx_id id{.number = out.get(prm::general_object_out::obj_id)};
    if (command.opcode() == prm::command::create_general_object) {
        id.type = std::to_underlying(in.get(prm::general_object_in::obj_type));
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
    const devx_class* const what = find_devx_class(command.opcode());
    if (what == nullptr || !use_umems(command)) {
        return EINVAL;
    }
    // The object exists before its answer is copied, and ends again if that fails.
    const int error = command.run(call);
    if (prm::const_view<prm::any_output>::over(command.out)->get(prm::any_output::status) == prm::command_status::ok) {
        call.create(std::make_unique<devx_object>(call.file, *what, made_id(command)));
    }
    return error;
}

int destroy_object(uverbs_call& call)
{
    return call.destroy(*call.object<devx_object>(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));
}

// Of an object of verbs, what a DEVX object of its kind would be.
struct target {
    const devx_class* what = nullptr;
    devx_id id{};
};

target target_of(const uobject& object)
{
    switch (object.kind()) {
    case object_kind::devx_object: {
        const auto& devx = static_cast<const devx_object&>(object);
        return {.what = &devx.kind_of, .id = devx.id};
    }
    case object_kind::cq:
        return {.what = find_devx_class(prm::command::create_cq),
                .id   = {.number = static_cast<const cq_object&>(object).cqn}};
    case object_kind::qp:
        return {.what = find_devx_class(prm::command::create_qp),
                .id   = {.number = static_cast<const qp_object&>(object).qpn}};
    case object_kind::srq:
        return {.what = find_devx_class(prm::command::create_rmp),
                .id   = {.number = static_cast<const srq_object&>(object).srqn}};
    default:
        return {};
    }
}

int run_on_object(uverbs_call& call, std::uint16_t handle, std::uint16_t in, std::uint16_t out,
                  std::span<const prm::command> devx_class::* allowed)
{
    if (!call.file.may_devx) {
        return EINVAL;
    }
    devx_command command;
    if (const int error = command.take(call, in, out); error != 0) {
        return error;
    }
    const target of = target_of(*call.object<uobject>(handle));
    if (of.what == nullptr || !std::ranges::contains(of.what->*allowed, command.opcode()) ||
        id_in_command(command.input(), command.in) != of.id || !use_umems(command)) {
        return EINVAL;
    }
    return command.run(call);
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

constexpr std::array methods{
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, create_attributes, create_object},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, destroy_attributes, destroy_object},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, modify_attributes, modify_object},
    method_spec{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, query_attributes, query_object},
};

} // namespace

std::span<const method_spec> devx_object_methods()
{
    return methods;
}

} // namespace ucxl::softhca
