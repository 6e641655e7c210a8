#include "pattern.h"

namespace examples
{

pattern_list all_patterns()
{
    pattern_list all;
    add_matrix_column(all);
    add_halo_faces(all);
    add_tile(all);
    add_vertices(all);
    add_fft_transpose(all);
    add_lammps(all);
    add_milc(all);
    add_wrf(all);
    add_nas_lu(all);
    add_kv_cache(all);
    return all;
}

} // namespace examples
