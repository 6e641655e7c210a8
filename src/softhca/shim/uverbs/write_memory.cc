// REG_MR, REREG_MR and ALLOC_MW: keys for memory of the program.
#include <rdma/mlx5-abi.h>

#include "access.h"
#include "call.h"
#include "softhca/shim/objects/memory_key.h"
#include "softhca/shim/objects/verbs_objects.h"
#include "write_commands.h"

namespace ucxl::softhca
{

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

int check_region(const region& of)
{
    if ((of.address & page_mask) != (of.iova & page_mask) || of.address + of.length < of.address ||
        (of.length == 0 && (of.address & page_mask) == 0)) {
        return EINVAL;
    }
    return check_access_flags(of.access);
}

int pin_region(device_file& file, const region& of, user_memory& memory)
{
    if (const int error = check_region(of); error != 0) {
        return error;
    }
    return user_memory::pin(file, of.address, of.length, of.access, memory);
}

void note_region(key_object& key, const region& of)
{
    key.address = of.address;
    key.length  = of.length;
    key.iova    = of.iova;
    key.access  = of.access;
}

int register_region(device_file& file, pd_object& pd, const region& of, std::unique_ptr<key_object>& made)
{
    user_memory memory;
    if (const int error = pin_region(file, of, memory); error != 0) {
        return error;
    }
    std::uint32_t key = 0;
    if (const int error = make_region_key(file, pd, memory, of.iova, of.length, of.access, key); error != 0) {
        return error;
    }
    made         = std::make_unique<key_object>(object_kind::mr, file, pd, key);
    made->memory = std::move(memory);
    note_region(*made, of);
    return 0;
}

// What a request of the kind that is known makes of a region.
int changed_region(uverbs_call& call, const ib_uverbs_rereg_mr& request, const key_object& now, pd_object*& pd,
                   region& to)
{
    pd = now.domain.get();
    to = {.address = now.address, .length = now.length, .iova = now.iova, .access = now.access};
    if ((request.flags & rereg_translation) != 0) {
        to.address = request.start;
        to.length  = request.length;
        to.iova    = request.hca_va;
    }
    if ((request.flags & rereg_access) != 0) {
        to.access = request.access_flags;
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
    const region of{
        .address = request.start, .length = request.length, .iova = request.hca_va, .access = request.access_flags};
    if (const int error = register_region(call.file, *pd, of, made); error != 0) {
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

// The key keeps its number, as where the kernel can change it in its place. The memory is pinned anew: its rights may
// be others.
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
    region of{};
    if (const int error = changed_region(call, request, *region_key, pd, of); error != 0) {
        return error;
    }
    user_memory memory;
    if (const int error = pin_region(call.file, of, memory); error != 0) {
        return error;
    }
    if (const int error = replace_region_key(call.file, *pd, memory, of.iova, of.length, of.access, region_key->mkey);
        error != 0) {
        return error;
    }
    region_key->domain.reset(pd);
    region_key->memory = std::move(memory);
    note_region(*region_key, of);
    ib_uverbs_rereg_mr_resp response{};
    response.lkey = region_key->mkey;
    response.rkey = region_key->mkey;
    return call.respond(response);
}

int write_alloc_mw(uverbs_call& call)
{
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
