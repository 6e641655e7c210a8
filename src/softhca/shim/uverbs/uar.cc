// Doorbell pages (UARs).
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <array>

#include "call.h"
#include "methods.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t page_bytes = 4096;

class uar_object final : public uobject
{
public:
    uar_object(device_file& opened, std::uint32_t page) : uobject(object_kind::uar), file(opened), number(page)
    {
        file.outside.uar_made(number);
    }

    device_file& file;
    const std::uint32_t number;

private:
    int release() override
    {
        const int error = error_of(file.device.free_uar(number));
        if (error == 0) {
            file.outside.uar_freed(number);
        }
        return error;
    }
};

int alloc_uar(uverbs_call& call)
{
    std::uint64_t type = 0;
    if (const int error = call.read(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type); error != 0) {
        return error;
    }
    if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC) {
        return EOPNOTSUPP;
    }
    const auto number = call.file.device.alloc_uar(call.file.function);
    if (!number) {
        return error_of(number.error());
    }
    call.create(std::make_unique<uar_object>(call.file, *number));
    const std::uint64_t offset = call.file.outside.uar_map_offset(*number);
    if (const int error = call.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset); error != 0) {
        return error;
    }
    if (const int error = call.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, *number); error != 0) {
        return error;
    }
    return call.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, page_bytes);
}

int destroy_uar(uverbs_call& call)
{
    return call.destroy(*call.object<uar_object>(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE));
}

constexpr std::array alloc_attributes{
    new_handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE),
    constant(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE),
    output<std::uint64_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET),
    output<std::uint32_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH),
    output<std::uint32_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID),
};

constexpr std::array destroy_attributes{handle(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, object_kind::uar)};

constexpr std::array methods{
    method_spec{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, alloc_attributes, alloc_uar},
    method_spec{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, destroy_attributes, destroy_uar},
};

} // namespace

std::span<const method_spec> uar_methods()
{
    return methods;
}

} // namespace ucxl::softhca
