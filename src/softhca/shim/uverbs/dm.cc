// Device memory (MEMIC).
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <array>

#include "call.h"
#include "device_caps.h"
#include "methods.h"
#include "softhca/shim/objects/verbs.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint64_t page_bytes  = memic_page_bytes;
constexpr std::uint32_t log_granule = 6; // every allocation is aligned to it

struct dm_request {
    std::uint64_t length    = 0;
    std::uint32_t alignment = 0; // log2
    std::uint64_t type      = MLX5_IB_UAPI_DM_TYPE_MEMIC;
};

int read_request(uverbs_call& call, dm_request& request)
{
    if (const int error = call.read(UVERBS_ATTR_ALLOC_DM_LENGTH, request.length); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, request.alignment); error != 0) {
        return error;
    }
    if (const int error = call.read(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, request.type); error != 0) {
        return error;
    }
    return request.type == MLX5_IB_UAPI_DM_TYPE_MEMIC ? 0 : EOPNOTSUPP;
}

int check_limits(device_file& file, const dm_request& request)
{
    device_caps general;
    if (const int error = general.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    if (general.general().get(prm::hca_cap::device_memory) == 0) {
        return EOPNOTSUPP;
    }
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::device_memory); error != 0) {
        return error;
    }
    const auto memory = caps.device_memory();
    if (memory.get(prm::device_mem_cap::memic) == 0) {
        return EOPNOTSUPP;
    }
    const std::uint32_t log_most = log_granule + memory.get(prm::device_mem_cap::log_max_memic_addr_alignment);
    const bool good = request.length != 0 && request.length <= memory.get(prm::device_mem_cap::max_memic_size) &&
                      request.alignment <= log_most;
    return good ? 0 : EINVAL;
}

std::uint16_t page_of(uverbs_call& call, const dm_object& memory)
{
    return call.file.outside.memic_page_index(call.file.function, memory.offset / page_bytes);
}

int alloc_dm(uverbs_call& call)
{
    dm_request request;
    if (const int error = read_request(call, request); error != 0) {
        return error;
    }
    if (const int error = check_limits(call.file, request); error != 0) {
        return error;
    }
    const unsigned log_alignment = request.alignment < log_granule ? 0 : request.alignment - log_granule;
    const auto offset            = call.file.device.alloc_memic(call.file.function, request.length, log_alignment);
    if (!offset) {
        return offset.error() == prm::command_status::no_resources ? ENOMEM : error_of(offset.error());
    }
    auto made                 = std::make_unique<dm_object>(call.file, *offset, request.length);
    const std::uint64_t start = *offset % page_bytes;
    const std::uint16_t page  = page_of(call, *made);
    call.create(std::move(made));
    if (const int error = call.write(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, page); error != 0) {
        return error;
    }
    return call.write(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, start);
}

int free_dm(uverbs_call& call)
{
    return call.destroy(*call.object<dm_object>(UVERBS_ATTR_FREE_DM_HANDLE));
}

int query_dm(uverbs_call& call)
{
    const auto* const memory  = call.object<dm_object>(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE);
    const std::uint64_t start = memory->offset % page_bytes;
    if (const int error = call.write(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, start); error != 0) {
        return error;
    }
    if (const int error = call.write(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, page_of(call, *memory)); error != 0) {
        return error;
    }
    return call.write(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, memory->length);
}

// Addresses that perform an operation when the CPU reads them are not modelled.
int map_operation(uverbs_call&)
{
    return EOPNOTSUPP;
}

constexpr std::array alloc_attributes{
    new_handle(UVERBS_ATTR_ALLOC_DM_HANDLE),
    input<std::uint64_t>(UVERBS_ATTR_ALLOC_DM_LENGTH),
    input<std::uint32_t>(UVERBS_ATTR_ALLOC_DM_ALIGNMENT),
    output<std::uint64_t>(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET),
    output<std::uint16_t>(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, presence::optional),
    constant(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, presence::optional),
};

constexpr std::array free_attributes{handle(UVERBS_ATTR_FREE_DM_HANDLE, object_kind::dm)};

constexpr std::array query_attributes{
    handle(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, object_kind::dm),
    output<std::uint64_t>(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET),
    output<std::uint16_t>(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX),
    output<std::uint64_t>(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH),
};

constexpr std::array operation_attributes{
    handle(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE, object_kind::dm),
    input<std::uint8_t>(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP),
    output<std::uint64_t>(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET),
    output<std::uint16_t>(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX),
};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, alloc_attributes, alloc_dm},
    method_spec{UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, free_attributes, free_dm},
    method_spec{UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY, query_attributes, query_dm},
    method_spec{UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_MAP_OP_ADDR, operation_attributes, map_operation},
};

} // namespace

std::span<const method_spec> dm_methods()
{
    return methods;
}

} // namespace ucxl::softhca
