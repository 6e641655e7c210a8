// An mlx5 device, opened by its name with DEVX.
#pragma once

#include <memory>

#include "sys/error.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class named_device
{
public:
    // NULL opens the first device.
    static result<named_device> open(const char* name);

    ibv_context* context() const { return _context.get(); }
    const char* name() const { return ibv_get_device_name(_context->device); }

private:
    using context_owner = std::unique_ptr<ibv_context, verbs_destroyer<ibv_close_device>>;

    explicit named_device(context_owner&& context) : _context(std::move(context)) {}

    context_owner _context;
};

} // namespace ucxl::mlx5
