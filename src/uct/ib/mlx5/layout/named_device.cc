#include "named_device.h"

#include <span>

namespace ucxl::mlx5
{

result<named_device> named_device::open(const char* name)
{
    struct list_end {
        void operator()(ibv_device** list) const { ibv_free_device_list(list); }
    };
    int count = 0;
    const std::unique_ptr<ibv_device*, list_end> list(ibv_get_device_list(&count));
    for (ibv_device* const one : std::span(list.get(), static_cast<std::size_t>(list != nullptr ? count : 0))) {
        if (!mlx5dv_is_supported(one) || (name != nullptr && std::strcmp(ibv_get_device_name(one), name) != 0)) {
            continue;
        }
        mlx5dv_context_attr attr{};
        attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
        context_owner opened(mlx5dv_open_device(one, &attr));
        if (opened == nullptr) {
            return fail_errno("opening the device with DEVX");
        }
        return named_device(std::move(opened));
    }
    return fail(errc::no_device, name == nullptr ? std::string("there is no mlx5 device")
                                                 : std::format("there is no mlx5 device '{}'", name));
}

} // namespace ucxl::mlx5
