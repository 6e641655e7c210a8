#include "protection_domain.h"

#include <infiniband/mlx5dv.h>

namespace ucxl::mlx5
{

result<std::uint32_t> protection_domain_number(ibv_pd* pd)
{
    mlx5dv_pd described{};
    mlx5dv_obj wanted{};
    wanted.pd.in  = pd;
    wanted.pd.out = &described;
    if (const int error = mlx5dv_init_obj(&wanted, MLX5DV_OBJ_PD); error != 0) {
        return fail_errno("the number of the protection domain", error);
    }
    return described.pdn;
}

} // namespace ucxl::mlx5
