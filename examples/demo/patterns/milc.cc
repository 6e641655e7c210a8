// Lattice QCD with MILC: the su3 vectors of the lower z boundary of a 16^4 lattice, even and odd sites kept apart
// (MILC_su3_zd of DDTBench, with its largest size). A vector is three complex floats; 32 blocks of 3 KiB.
#include "parts.h"

namespace examples
{

static constexpr std::size_t nx = 16, ny = 16, nz = 16, nt = 16;
static constexpr std::size_t vector_bytes  = 3 * 2 * sizeof(float);
static constexpr std::size_t slice_bytes   = nx * ny / 2 * vector_bytes; // one z, one parity
static constexpr std::size_t time_bytes    = nz * slice_bytes;           // one t, one parity
static constexpr std::size_t parity_bytes  = nt * time_bytes;
static constexpr std::size_t lattice_bytes = 2 * parity_bytes;
static constexpr std::size_t arrived_byte  = (nz - 1) * slice_bytes;

void add_milc(pattern_list& to)
{
    const auto boundary = [](std::size_t first) {
        return strided_part{first, slice_bytes, {{2, parity_bytes}, {nt, time_bytes}}};
    };
    to.push_back({.name        = "milc-su3-zdown",
                  .description = "su3 vectors of the z boundary of a 16^4 lattice",
                  .send        = strided_side(lattice_bytes, boundary(0)),
                  .receive     = strided_side(lattice_bytes, boundary(arrived_byte)),
                  .pack =
                      [](array_list from, std::byte* packed) {
                          for (std::size_t parity = 0; parity < 2; ++parity) {
                              for (std::size_t t = 0; t < nt; ++t) {
                                  take<slice_bytes>(packed, from[0] + parity * parity_bytes + t * time_bytes);
                              }
                          }
                      },
                  .unpack =
                      [](const std::byte* packed, array_list into) {
                          for (std::size_t parity = 0; parity < 2; ++parity) {
                              for (std::size_t t = 0; t < nt; ++t) {
                                  give<slice_bytes>(packed,
                                                    into[0] + arrived_byte + parity * parity_bytes + t * time_bytes);
                              }
                          }
                      }});
}

} // namespace examples
