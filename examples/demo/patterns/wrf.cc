// Weather with WRF: one message holds the same sub-block of four 2-D, three 3-D and two 4-D fields of floats (WRF_x_vec
// and WRF_y_vec of DDTBench, case em_b_wave on 2 x 2 processes). Fields are stored (x, height, y), x fastest; of a 4-D
// field the second scalar is exchanged. Each process sends the interior next to its boundary and fills the halo on the
// other side.
#include "parts.h"

namespace examples
{

static constexpr std::size_t nx = 32, nk = 65, ny = 52; // of the fields, halo included
static constexpr std::size_t float_bytes  = sizeof(float);
static constexpr std::size_t row_bytes    = nx * float_bytes;
static constexpr std::size_t slab_bytes   = nk * row_bytes; // one y of a 3-D field
static constexpr std::size_t volume_bytes = ny * slab_bytes;
static constexpr std::size_t fields_2d = 4, fields_3d = 3, fields_4d = 2;
static constexpr std::size_t fields = fields_2d + fields_3d + fields_4d;

struct corner {
    std::size_t x, y;
};

static constexpr std::size_t first_byte(std::size_t field, corner corner)
{
    const std::size_t slabs = field < fields_2d ? row_bytes : slab_bytes;
    const std::size_t skip  = field < fields_2d + fields_3d ? 0 : volume_bytes;
    return skip + corner.y * slabs + corner.x * float_bytes;
}

static strided_part part_of(std::size_t field, corner corner, std::size_t width, std::size_t depth)
{
    if (field < fields_2d) {
        return {first_byte(field, corner), width * float_bytes, {{depth, row_bytes}}};
    }
    return {first_byte(field, corner), width * float_bytes, {{depth, slab_bytes}, {nk, row_bytes}}};
}

static pattern_side side_at(corner corner, std::size_t width, std::size_t depth)
{
    pattern_side side;
    for (std::size_t field = 0; field < fields; ++field) {
        side.array_bytes.push_back(field < fields_2d               ? ny * row_bytes
                                   : field < fields_2d + fields_3d ? volume_bytes
                                                                   : 2 * volume_bytes);
        side.base_offsets.push_back(0);
    }
    side.make_layout = [=] {
        std::vector<ucx_layout::layout> nested;
        std::vector<ucp_layout_iov_t> parts;
        for (std::uint32_t field = 0; field < fields; ++field) {
            const strided_part part = part_of(field, corner, width, depth);
            nested.push_back(part.make_layout());
            parts.push_back({field, static_cast<std::ptrdiff_t>(part.offset_bytes), nested.back().as_element()});
        }
        return list_of(parts);
    };
    side.blocks = [=] {
        std::vector<block> all;
        for (std::uint32_t field = 0; field < fields; ++field) {
            append_blocks(all, field, part_of(field, corner, width, depth));
        }
        return all;
    };
    return side;
}

template <std::size_t width, std::size_t depth>
static void pack(array_list from, corner corner, std::byte* packed)
{
    for (std::size_t field = 0; field < fields; ++field) {
        const std::byte* const first = from[field] + first_byte(field, corner);
        for (std::size_t y = 0; y < depth; ++y) {
            if (field < fields_2d) {
                take<width * float_bytes>(packed, first + y * row_bytes);
                continue;
            }
            for (std::size_t k = 0; k < nk; ++k) {
                take<width * float_bytes>(packed, first + y * slab_bytes + k * row_bytes);
            }
        }
    }
}

template <std::size_t width, std::size_t depth>
static void unpack(const std::byte* packed, array_list to, corner corner)
{
    for (std::size_t field = 0; field < fields; ++field) {
        std::byte* const first = to[field] + first_byte(field, corner);
        for (std::size_t y = 0; y < depth; ++y) {
            if (field < fields_2d) {
                give<width * float_bytes>(packed, first + y * row_bytes);
                continue;
            }
            for (std::size_t k = 0; k < nk; ++k) {
                give<width * float_bytes>(packed, first + y * slab_bytes + k * row_bytes);
            }
        }
    }
}

template <std::size_t width, std::size_t depth>
static void add(pattern_list& to, const char* name, const char* description, corner sent, corner arrived)
{
    to.push_back({.name        = name,
                  .description = description,
                  .send        = side_at(sent, width, depth),
                  .receive     = side_at(arrived, width, depth),
                  .pack        = [sent](array_list from, std::byte* packed) { pack<width, depth>(from, sent, packed); },
                  .unpack      = [arrived](const std::byte* packed,
                                      array_list into) { unpack<width, depth>(packed, into, arrived); }});
}

void add_wrf(pattern_list& to)
{
    add<3, 44>(to, "wrf-x", "x boundary, 3 floats wide, of nine WRF fields", {22, 4}, {1, 4});
    add<23, 3>(to, "wrf-y", "y boundary, 3 rows deep, of nine WRF fields", {5, 7}, {5, 48});
}

} // namespace examples
