#include "dispatch.h"

#include <algorithm>
#include <array>

#include "call.h"
#include "methods.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::size_t max_request_bytes = 4096;
constexpr std::uint32_t mlx5_driver     = 1; // RDMA_DRIVER_MLX5

// Objects of the interface that this device does not have.
constexpr std::array<std::uint16_t, 11> refused_objects{
    UVERBS_OBJECT_AH,
    UVERBS_OBJECT_FLOW,
    UVERBS_OBJECT_XRCD,
    UVERBS_OBJECT_RWQ_IND_TBL,
    UVERBS_OBJECT_WQ,
    UVERBS_OBJECT_FLOW_ACTION,
    UVERBS_OBJECT_COUNTERS,
    MLX5_IB_OBJECT_FLOW_MATCHER,
    MLX5_IB_OBJECT_VAR,
    MLX5_IB_OBJECT_PP,
    MLX5_IB_OBJECT_STEERING_ANCHOR,
};

const std::array all_methods{
    context_methods(), device_methods(), pd_methods(), mr_methods(),  cq_methods(),
    qp_methods(),      srq_methods(),    dm_methods(), uar_methods(), devx_methods(),
};

const method_spec* find_method(std::uint16_t object, std::uint16_t method)
{
    for (const std::span<const method_spec> methods : all_methods) {
        for (const method_spec& candidate : methods) {
            if (candidate.object == object && candidate.method == method) {
                return &candidate;
            }
        }
    }
    return nullptr;
}

// What a context that was cut off from its device may still do: destroy its objects (rdma_lookup_get_uobject() and
// ib_uverbs_get_ucontext_file() in drivers/infiniband/core; all else is EIO).
bool may_be_cut_off(const method_spec& method)
{
    switch (method.object) {
    case UVERBS_OBJECT_PD:
        return method.method == UVERBS_METHOD_PD_DESTROY;
    case UVERBS_OBJECT_MR:
        return method.method == UVERBS_METHOD_MR_DESTROY;
    case UVERBS_OBJECT_MW:
        return method.method == UVERBS_METHOD_MW_DESTROY;
    case UVERBS_OBJECT_CQ:
        return method.method == UVERBS_METHOD_CQ_DESTROY;
    case UVERBS_OBJECT_QP:
        return method.method == UVERBS_METHOD_QP_DESTROY;
    case UVERBS_OBJECT_SRQ:
        return method.method == UVERBS_METHOD_SRQ_DESTROY;
    case UVERBS_OBJECT_DM:
        return method.method == UVERBS_METHOD_DM_FREE;
    case MLX5_IB_OBJECT_UAR:
        return method.method == MLX5_IB_METHOD_UAR_OBJ_DESTROY;
    case MLX5_IB_OBJECT_DEVX_OBJ:
        return method.method == MLX5_IB_METHOD_DEVX_OBJ_DESTROY;
    case MLX5_IB_OBJECT_DEVX_UMEM:
        return method.method == MLX5_IB_METHOD_DEVX_UMEM_DEREG;
    default:
        return false;
    }
}

// Whether the method may be called before there is a context.
bool before_context(const method_spec& method)
{
    return method.object == UVERBS_OBJECT_DEVICE &&
           (method.method == UVERBS_METHOD_INVOKE_WRITE || method.method == UVERBS_METHOD_GET_CONTEXT);
}

} // namespace

int dispatch_ioctl(device_file& file, unsigned long request, std::uint64_t argument)
{
    // The kernel uses 32 bits of it; callers in glibc sign-extend.
    if (static_cast<std::uint32_t>(request) != static_cast<std::uint32_t>(RDMA_VERBS_IOCTL)) {
        return ENOTTY;
    }
    ib_uverbs_ioctl_hdr header{};
    if (!file.outside.read_user(&header, argument, sizeof(header))) {
        return EFAULT;
    }
    const std::size_t length = sizeof(header) + header.num_attrs * sizeof(ib_uverbs_attr);
    if (header.length > max_request_bytes || header.length != length) {
        return EINVAL;
    }
    if (header.reserved1 != 0 || header.reserved2 != 0) {
        return EPROTONOSUPPORT;
    }
    if (header.driver_id != mlx5_driver) {
        return EINVAL;
    }
    if (std::ranges::contains(refused_objects, header.object_id)) {
        return EOPNOTSUPP;
    }
    const method_spec* const method = find_method(header.object_id, header.method_id);
    if (method == nullptr) {
        return EPROTONOSUPPORT;
    }
    if (file.is_cut_off() && !may_be_cut_off(*method)) {
        return EIO;
    }
    uverbs_call call(file);
    if (const int error = call.take(*method, argument + sizeof(header), header.num_attrs); error != 0) {
        return error;
    }
    if (!file.has_context && !before_context(*method)) {
        return EINVAL;
    }
    return call.finish(method->run(call));
}

int dispatch_write(device_file& file, std::uint64_t bytes, std::size_t length)
{
    ib_uverbs_cmd_hdr header{};
    if (length < sizeof(header)) {
        return EINVAL;
    }
    if (!file.outside.read_user(&header, bytes, sizeof(header))) {
        return EFAULT;
    }
    if (file.is_cut_off()) {
        return EIO;
    }
    const write_command* command = nullptr;
    if (const int error = find_write_command(header.command, command); error != 0) {
        return error;
    }
    if ((header.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0 || length != header.in_words * std::size_t{4}) {
        return EINVAL;
    }
    const std::size_t core_in  = command->request_bytes;
    const std::size_t core_out = command->response_bytes;
    const std::size_t all_in   = length - sizeof(header);
    const std::size_t all_out  = header.out_words * std::size_t{4};
    if (all_in < core_in || all_out < core_out) {
        return ENOSPC;
    }
    std::uint64_t response = 0;
    if (core_out != 0 && !file.outside.read_user(&response, bytes + sizeof(header), sizeof(response))) {
        return EFAULT;
    }
    uverbs_call call(file);
    const std::uint64_t request = bytes + sizeof(header);
    call.take_write({.data = request, .length = core_in}, {.address = response, .length = core_out},
                    {.data = request + core_in, .length = all_in - core_in},
                    {.address = response + core_out, .length = all_out - core_out});
    return call.finish(run_write_command(call, *command));
}

} // namespace ucxl::softhca
