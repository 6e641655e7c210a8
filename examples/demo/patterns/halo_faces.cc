// The six faces of a 3-D block of doubles with a ghost layer around it, x fastest. A z face consists of whole rows that
// are close together, a y face of rows one plane apart, an x face of single numbers: 16,384 blocks of 8 B, the worst
// case for any packing.
#include "parts.h"

namespace examples
{

static constexpr std::size_t inner       = 128; // cells per direction
static constexpr std::size_t outer       = inner + 2;
static constexpr std::size_t cell_bytes  = sizeof(double);
static constexpr std::size_t row_bytes   = outer * cell_bytes;
static constexpr std::size_t plane_bytes = outer * row_bytes;
static constexpr std::size_t array_bytes = outer * plane_bytes;

static constexpr std::size_t cell(std::size_t x, std::size_t y, std::size_t z)
{
    return x * cell_bytes + y * row_bytes + z * plane_bytes;
}

// A face is named by the dimensions it spans: blocks of block_bytes, n_slow x n_fast of them.
template <std::size_t block_bytes, std::size_t n_slow, std::size_t slow_stride, std::size_t n_fast,
          std::size_t fast_stride>
struct face {
    static strided_part part(std::size_t first)
    {
        return {first, block_bytes, {{n_slow, slow_stride}, {n_fast, fast_stride}}};
    }
    static void pack(const std::byte* from, std::byte* packed)
    {
        for (std::size_t slow = 0; slow < n_slow; ++slow) {
            for (std::size_t fast = 0; fast < n_fast; ++fast) {
                take<block_bytes>(packed, from + slow * slow_stride + fast * fast_stride);
            }
        }
    }
    static void unpack(const std::byte* packed, std::byte* to)
    {
        for (std::size_t slow = 0; slow < n_slow; ++slow) {
            for (std::size_t fast = 0; fast < n_fast; ++fast) {
                give<block_bytes>(packed, to + slow * slow_stride + fast * fast_stride);
            }
        }
    }
};

using x_face = face<cell_bytes, inner, plane_bytes, inner, row_bytes>;
using y_face = face<inner * cell_bytes, 1, 0, inner, plane_bytes>;
using z_face = face<inner * cell_bytes, 1, 0, inner, row_bytes>;

template <typename FaceKind>
static void add_face(pattern_list& to, const char* name, const char* description, std::size_t sent, std::size_t arrived)
{
    to.push_back({.name        = name,
                  .description = description,
                  .send        = strided_side(array_bytes, FaceKind::part(sent)),
                  .receive     = strided_side(array_bytes, FaceKind::part(arrived)),
                  .pack        = [sent](array_list from, std::byte* packed) { FaceKind::pack(from[0] + sent, packed); },
                  .unpack      = [arrived](const std::byte* packed,
                                      array_list into) { FaceKind::unpack(packed, into[0] + arrived); }});
}

// The low end of one block is the ghost layer at the high end of its neighbour.
void add_halo_faces(pattern_list& to)
{
    add_face<x_face>(to, "halo-x-low", "x face of 128^3 doubles, sent downwards", cell(1, 1, 1), cell(inner + 1, 1, 1));
    add_face<x_face>(to, "halo-x-high", "x face, sent upwards", cell(inner, 1, 1), cell(0, 1, 1));
    add_face<y_face>(to, "halo-y-low", "y face, sent downwards", cell(1, 1, 1), cell(1, inner + 1, 1));
    add_face<y_face>(to, "halo-y-high", "y face, sent upwards", cell(1, inner, 1), cell(1, 0, 1));
    add_face<z_face>(to, "halo-z-low", "z face, sent downwards", cell(1, 1, 1), cell(1, 1, inner + 1));
    add_face<z_face>(to, "halo-z-high", "z face, sent upwards", cell(1, 1, inner), cell(1, 1, 0));
}

} // namespace examples
