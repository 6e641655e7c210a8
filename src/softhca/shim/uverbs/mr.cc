// Memory regions and memory windows.
#include <rdma/mlx5-abi.h>

#include <array>

#include "call.h"
#include "device_caps.h"
#include "methods.h"
#include "softhca/shim/objects/access_flags.h"
#include "softhca/shim/objects/memory_key.h"
#include "softhca/shim/objects/verbs.h"
#include "write_commands.h"

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

// Advice is about paging on demand, and dma-buf about memory of other devices. This device has neither.
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

namespace
{

constexpr std::uint64_t page_mask = 4095;

constexpr std::uint32_t rereg_translation = 1U << 0;
constexpr std::uint32_t rereg_pd          = 1U << 1;
constexpr std::uint32_t rereg_access      = 1U << 2;

constexpr std::uint8_t window_type_1 = 1;
constexpr std::uint8_t window_type_2 = 2;

struct region {
    std::uint64_t address;
    std::uint64_t length;
    std::uint64_t iova;
    std::uint32_t access;
};

int check_region(const region& range)
{
    if ((range.address & page_mask) != (range.iova & page_mask) || range.address + range.length < range.address ||
        (range.length == 0 && (range.address & page_mask) == 0)) {
        return EINVAL;
    }
    return check_access_flags(range.access);
}

int pin_region(device_file& file, const region& range, pinned_memory& memory)
{
    if (const int error = check_region(range); error != 0) {
        return error;
    }
    return pinned_memory::pin(file, range.address, range.length, range.access, memory);
}

void note_region(key_object& key, const region& range)
{
    key.address = range.address;
    key.length  = range.length;
    key.iova    = range.iova;
    key.access  = range.access;
}

int register_region(device_file& file, pd_object& pd, const region& range, std::unique_ptr<key_object>& made)
{
    pinned_memory memory;
    if (const int error = pin_region(file, range, memory); error != 0) {
        return error;
    }
    std::uint32_t key = 0;
    if (const int error = make_region_key(file, pd, memory, range.iova, range.length, range.access, key); error != 0) {
        return error;
    }
    made         = std::make_unique<key_object>(object_kind::mr, file, pd, key);
    made->memory = std::move(memory);
    note_region(*made, range);
    return 0;
}

// Applies the request to the region of a key.
int changed_region(uverbs_call& call, const ib_uverbs_rereg_mr& request, const key_object& now, pd_object*& pd,
                   region& range)
{
    pd    = now.domain.get();
    range = {.address = now.address, .length = now.length, .iova = now.iova, .access = now.access};
    if ((request.flags & rereg_translation) != 0) {
        range.address = request.start;
        range.length  = request.length;
        range.iova    = request.hca_va;
    }
    if ((request.flags & rereg_access) != 0) {
        range.access = request.access_flags;
    }
    return (request.flags & rereg_pd) != 0 ? call.find_object(request.pd_handle, pd) : 0;
}

} // namespace

int write_reg_mr(uverbs_call& call)
{
    ib_uverbs_reg_mr request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    pd_object* pd = nullptr;
    if (const int error = call.find_object(request.pd_handle, pd); error != 0) {
        return error;
    }
    std::unique_ptr<key_object> made;
    const region range{
        .address = request.start, .length = request.length, .iova = request.hca_va, .access = request.access_flags};
    if (const int error = register_region(call.file, *pd, range, made); error != 0) {
        return error;
    }
    const std::uint32_t key = made->mkey;
    call.create(std::move(made));
    ib_uverbs_reg_mr_resp response{};
    response.mr_handle = call.new_handle();
    response.lkey      = key;
    response.rkey      = key;
    return call.respond(response);
}

// The key keeps its number, as when the kernel can change it in place. The memory is pinned again, because its access
// may change.
int write_rereg_mr(uverbs_call& call)
{
    ib_uverbs_rereg_mr request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    if (request.flags == 0) {
        return EINVAL;
    }
    if ((request.flags & ~(rereg_translation | rereg_pd | rereg_access)) != 0) {
        return EOPNOTSUPP;
    }
    uobject* found = nullptr;
    if (const int error = call.lookup(request.mr_handle, object_kind::mr, found); error != 0) {
        return error;
    }
    auto* const region_key = static_cast<key_object*>(found);
    if (region_key->device_memory) {
        return EINVAL;
    }
    pd_object* pd = nullptr;
    region range{};
    if (const int error = changed_region(call, request, *region_key, pd, range); error != 0) {
        return error;
    }
    pinned_memory memory;
    if (const int error = pin_region(call.file, range, memory); error != 0) {
        return error;
    }
    if (const int error =
            replace_region_key(call.file, *pd, memory, range.iova, range.length, range.access, region_key->mkey);
        error != 0) {
        return error;
    }
    region_key->domain.reset(pd);
    region_key->memory = std::move(memory);
    note_region(*region_key, range);
    ib_uverbs_rereg_mr_resp response{};
    response.lkey = region_key->mkey;
    response.rkey = region_key->mkey;
    return call.respond(response);
}

int write_alloc_mw(uverbs_call& call)
{
    // Linux has the methods of windows only for cards with this capability (mlx5_ib_dev_mw_ops). Elsewhere a peer would
    // need remote rights to the region below the window as well.
    device_caps caps;
    if (const int error = caps.query(call.file, prm::cap_page::general); error != 0) {
        return error;
    }
    if (caps.general().get(prm::hca_cap::imaicl) == 0) {
        return EOPNOTSUPP;
    }
    ib_uverbs_alloc_mw request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    mlx5_ib_alloc_mw driver{};
    if (const int error = call.read_growing(UVERBS_ATTR_UHW_IN, &driver, sizeof(driver)); error != 0) {
        return error;
    }
    if (driver.comp_mask != 0 || driver.reserved1 != 0 || driver.reserved2 != 0) {
        return EOPNOTSUPP;
    }
    pd_object* pd = nullptr;
    if (const int error = call.find_object(request.pd_handle, pd); error != 0) {
        return error;
    }
    if (request.mw_type != window_type_1 && request.mw_type != window_type_2) {
        return EINVAL;
    }
    std::uint32_t key = 0;
    if (const int error = make_window_key(call.file, *pd, driver.num_klms, request.mw_type == window_type_2, key);
        error != 0) {
        return error;
    }
    call.create(std::make_unique<key_object>(object_kind::mw, call.file, *pd, key));
    ib_uverbs_alloc_mw_resp response{};
    response.mw_handle = call.new_handle();
    response.rkey      = key;
    return call.respond(response);
}

} // namespace ucxl::softhca
