#include "found_by_self_test.h"

#include <cstdio>
#include <stdexcept>

#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace ucxl::test
{

namespace
{

const char* name_of(uct_mlx5_layout_address_method_t method)
{
    switch (method) {
    case UCT_MLX5_LAYOUT_ADDRESS_NONE:
        return "none";
    case UCT_MLX5_LAYOUT_ADDRESS_UMR:
        return "umr";
    case UCT_MLX5_LAYOUT_ADDRESS_KSM:
        return "ksm";
    }
    return "?";
}

} // namespace

int found_by_self_test()
{
    try {
        const verbs_pair pair;
        uct_mlx5_layout_domain_params_t params{};
        params.field_mask               = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD;
        params.pd                       = pair.pd();
        uct_mlx5_layout_domain_h domain = nullptr;
        if (uct_mlx5_layout_domain_open(&params, &domain) != UCS_OK) {
            return 1;
        }
        uct_mlx5_layout_domain_attr_t attr{};
        attr.field_mask = UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_FLAGS | UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_MAX_DEPTH |
                          UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_ADDRESS_METHOD;
        if (uct_mlx5_layout_domain_query(domain, &attr) != UCS_OK) {
            return 3;
        }
        const auto has = [&](unsigned flag) { return (attr.flags & flag) != 0 ? 1 : 0; };
        std::printf("address=%s repeat=%d atomic=%d nesting=%u pointer=%d local_nested=%d",
                    name_of(attr.address_method), has(UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK),
                    has(UCT_MLX5_LAYOUT_CAP_ATOMIC), attr.max_depth, has(UCT_MLX5_LAYOUT_CAP_POINTER),
                    has(UCT_MLX5_LAYOUT_CAP_LOCAL_NESTED));
        uct_mlx5_layout_domain_close(domain);
        return 0;
    } catch (const std::runtime_error& failed) {
        std::printf("%s", failed.what());
        return 2;
    }
}

} // namespace ucxl::test
