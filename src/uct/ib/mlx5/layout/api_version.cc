// The version function of uct_mlx5_layout.h.
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace
{

constexpr unsigned release_of_api = 0;

void set(unsigned* number, unsigned value)
{
    if (number != nullptr) {
        *number = value;
    }
}

} // namespace

void uct_mlx5_layout_get_version(unsigned* major, unsigned* minor, unsigned* release)
{
    set(major, UCT_MLX5_LAYOUT_API_MAJOR);
    set(minor, UCT_MLX5_LAYOUT_API_MINOR);
    set(release, release_of_api);
}
