#include <array>

#include "methods.h"

namespace ucxl::softhca
{

std::span<const std::span<const method_spec>> all_methods()
{
    static const std::array all{
        device_methods(), pd_methods(),  mr_methods(),   cq_methods(),          qp_methods(),         srq_methods(),
        dm_methods(),     uar_methods(), devx_methods(), devx_object_methods(), devx_event_methods(),
    };
    return all;
}

} // namespace ucxl::softhca
