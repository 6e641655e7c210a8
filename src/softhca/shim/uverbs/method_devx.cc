// DEVX methods that need no object: general commands, event queue numbers, and memory.
#include <array>

#include "access.h"
#include "call.h"
#include "methods.h"
#include "softhca/shim/objects/devx_command.h"
#include "softhca/shim/objects/devx_object.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint16_t header_bytes = 16;

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

// Doorbell pages are asked for one by one and known by their number: there is no table of them to look in.
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
    user_memory memory;
    if (const int error = user_memory::pin(call.file, address, length, access, memory, call.file.uid); error != 0) {
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

constexpr std::array methods{
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, general_attributes, run_general},
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, uar_attributes, query_uar},
    method_spec{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, event_queue_attributes, query_event_queue},
    method_spec{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, register_attributes, register_umem},
    method_spec{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, deregister_attributes, deregister_umem},
};

} // namespace

std::span<const method_spec> devx_methods()
{
    return methods;
}

} // namespace ucxl::softhca
