// Memory regions and windows, beyond what the older commands make.
#include <array>

#include "access.h"
#include "call.h"
#include "methods.h"
#include "softhca/shim/objects/memory_key.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t device_memory_access = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
                                               IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC |
                                               IB_UVERBS_ACCESS_ZERO_BASED | IB_UVERBS_ACCESS_OPTIONAL_RANGE;

int register_device_memory(uverbs_call& call)
{
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t access = 0;
    if (const int error = call.read(UVERBS_ATTR_REG_DM_MR_OFFSET, offset); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_REG_DM_MR_LENGTH, length); error != 0) {
        return error;
    }
    const std::uint32_t allowed = known_access | IB_UVERBS_ACCESS_OPTIONAL_RANGE;
    if (const int error = call.read_flags(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, allowed, access); error != 0) {
        return error;
    }
    if ((access & IB_UVERBS_ACCESS_ZERO_BASED) == 0 || (access & ~device_memory_access) != 0) {
        return EINVAL;
    }
    if (const int error = check_access_flags(access); error != 0) {
        return error;
    }
    auto* const pd     = call.object<pd_object>(UVERBS_ATTR_REG_DM_MR_PD_HANDLE);
    auto* const memory = call.object<dm_object>(UVERBS_ATTR_REG_DM_MR_DM_HANDLE);
    if (offset > memory->length || length > memory->length - offset) {
        return EINVAL;
    }
    std::uint32_t key = 0;
    if (const int error = make_device_memory_key(call.file, *pd, memory->offset + offset, length, access, key);
        error != 0) {
        return error;
    }
    auto made    = std::make_unique<key_object>(object_kind::mr, call.file, *pd, key);
    made->length = length;
    made->access = access;
    made->device_memory.reset(memory);
    call.create(std::move(made));
    if (const int error = call.write(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, key); error != 0) {
        return error;
    }
    return call.write(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, key);
}

int destroy_mr(uverbs_call& call)
{
    return call.destroy(*call.object<key_object>(UVERBS_ATTR_DESTROY_MR_HANDLE));
}

int destroy_mw(uverbs_call& call)
{
    return call.destroy(*call.object<key_object>(UVERBS_ATTR_DESTROY_MW_HANDLE));
}

int query_mr(uverbs_call& call)
{
    const auto* const region = call.object<key_object>(UVERBS_ATTR_QUERY_MR_HANDLE);
    if (const int error = call.write(UVERBS_ATTR_QUERY_MR_RESP_LKEY, region->mkey); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_QUERY_MR_RESP_RKEY, region->mkey); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, region->length); error != 0) {
        return error;
    }
    return call.write(UVERBS_ATTR_QUERY_MR_RESP_IOVA, region->iova);
}

// Advice is about paging on demand, and dma-buf about memory of other devices: this one has neither.
int refuse(uverbs_call&)
{
    return EOPNOTSUPP;
}

constexpr std::array device_memory_attributes{
    new_handle(UVERBS_ATTR_REG_DM_MR_HANDLE),
    input<std::uint64_t>(UVERBS_ATTR_REG_DM_MR_OFFSET),
    input<std::uint64_t>(UVERBS_ATTR_REG_DM_MR_LENGTH),
    handle(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, object_kind::pd),
    flags(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
    handle(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, object_kind::dm),
    output<std::uint32_t>(UVERBS_ATTR_REG_DM_MR_RESP_LKEY),
    output<std::uint32_t>(UVERBS_ATTR_REG_DM_MR_RESP_RKEY),
};

constexpr std::array destroy_mr_attributes{handle(UVERBS_ATTR_DESTROY_MR_HANDLE, object_kind::mr)};
constexpr std::array destroy_mw_attributes{handle(UVERBS_ATTR_DESTROY_MW_HANDLE, object_kind::mw)};

constexpr std::array query_mr_attributes{
    handle(UVERBS_ATTR_QUERY_MR_HANDLE, object_kind::mr),
    output<std::uint32_t>(UVERBS_ATTR_QUERY_MR_RESP_LKEY),
    output<std::uint32_t>(UVERBS_ATTR_QUERY_MR_RESP_RKEY),
    output<std::uint64_t>(UVERBS_ATTR_QUERY_MR_RESP_LENGTH),
    output<std::uint64_t>(UVERBS_ATTR_QUERY_MR_RESP_IOVA, presence::optional),
};

constexpr std::array advise_attributes{
    handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, object_kind::pd),
    constant(UVERBS_ATTR_ADVISE_MR_ADVICE),
    flags(UVERBS_ATTR_ADVISE_MR_FLAGS, presence::mandatory),
    input_from(UVERBS_ATTR_ADVISE_MR_SGE_LIST, sizeof(std::uint64_t)),
};

constexpr std::array dmabuf_attributes{
    new_handle(UVERBS_ATTR_REG_DMABUF_MR_HANDLE),
    handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, object_kind::pd),
    input<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
    input<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_LENGTH),
    input<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_IOVA),
    input<std::uint32_t>(UVERBS_ATTR_REG_DMABUF_MR_FD),
    flags(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
    output<std::uint32_t>(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY),
    output<std::uint32_t>(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY),
    flags(MLX5_IB_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, device_memory_attributes, register_device_memory},
    method_spec{UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, destroy_mr_attributes, destroy_mr},
    method_spec{UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, query_mr_attributes, query_mr},
    method_spec{UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, advise_attributes, refuse},
    method_spec{UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, dmabuf_attributes, refuse},
    method_spec{UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, destroy_mw_attributes, destroy_mw},
};

} // namespace

std::span<const method_spec> mr_methods()
{
    return methods;
}

} // namespace ucxl::softhca
