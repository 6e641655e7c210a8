// Interleaved vertices: X Y Z from one array, R G B from a second, S T from a third, 3:3:2 floats per vertex. The
// message is a stream of vertices; both ends keep separate arrays.
#include "parts.h"

namespace examples
{

static constexpr std::size_t vertices = 32768;
static constexpr std::array<std::size_t, 3> floats_per_vertex{3, 3, 2};

static ucx_layout::layout vertex_layout()
{
    std::array<ucp_layout_dim_t, 3> dims;
    std::array<ucp_layout_interleaved_t, 3> sources{};
    for (std::uint32_t i = 0; i < 3; ++i) {
        dims[i]    = {floats_per_vertex[i] * vertices, sizeof(float)};
        sources[i] = {.source   = i,
                      .offset   = 0,
                      .element  = {.length = sizeof(float), .layout = nullptr},
                      .repeat   = floats_per_vertex[i],
                      .dims     = &dims[i],
                      .num_dims = 1};
    }
    return must(ucx_layout::layout::interleave(sources), "interleaved layout");
}

static std::vector<block> vertex_blocks()
{
    std::vector<block> all;
    for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
        for (std::uint32_t i = 0; i < 3; ++i) {
            const std::size_t length_bytes = floats_per_vertex[i] * sizeof(float);
            all.push_back({i, vertex * length_bytes, length_bytes});
        }
    }
    return all;
}

void add_vertices(pattern_list& to)
{
    pattern_side side;
    for (const std::size_t floats : floats_per_vertex) {
        side.array_bytes.push_back(floats * vertices * sizeof(float));
        side.base_offsets.push_back(0);
    }
    side.make_layout = vertex_layout;
    side.blocks      = vertex_blocks;
    to.push_back({.name        = "vertices-3:3:2",
                  .description = "32,768 vertices of X Y Z, R G B, S T floats from three arrays",
                  .send        = side,
                  .receive     = side,
                  .pack =
                      [](array_list from, std::byte* packed) {
                          for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
                              take<12>(packed, from[0] + vertex * 12);
                              take<12>(packed, from[1] + vertex * 12);
                              take<8>(packed, from[2] + vertex * 8);
                          }
                      },
                  .unpack =
                      [](const std::byte* packed, array_list into) {
                          for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
                              give<12>(packed, into[0] + vertex * 12);
                              give<12>(packed, into[1] + vertex * 12);
                              give<8>(packed, into[2] + vertex * 8);
                          }
                      }});
}

} // namespace examples
