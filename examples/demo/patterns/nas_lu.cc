// NAS LU: the boundary of a 2-D field of five doubles per point (NAS_LU_x and NAS_LU_y of DDTBench, class C: 162 x 162
// points and a ghost layer). The x boundary is contiguous, one block of 6,480 B; the y boundary has 162 blocks of 40
// B.
#include "parts.h"

namespace examples
{

static constexpr std::size_t points      = 162;
static constexpr std::size_t point_bytes = 5 * sizeof(double);
static constexpr std::size_t row_bytes   = (points + 2) * point_bytes;
static constexpr std::size_t array_bytes = (points + 2) * row_bytes;

static constexpr std::size_t point(std::size_t x, std::size_t y)
{
    return x * point_bytes + y * row_bytes;
}

static void add_x(pattern_list& to)
{
    static constexpr std::size_t sent = point(1, points), arrived = point(1, 0), length = points * point_bytes;
    to.push_back({.name        = "nas-lu-x",
                  .description = "contiguous boundary of 162 points of five doubles",
                  .send        = strided_side(array_bytes, {sent, length, {}}),
                  .receive     = strided_side(array_bytes, {arrived, length, {}}),
                  .pack        = [](array_list from, std::byte* packed) { take<length>(packed, from[0] + sent); },
                  .unpack = [](const std::byte* packed, array_list into) { give<length>(packed, into[0] + arrived); }});
}

static void add_y(pattern_list& to)
{
    static constexpr std::size_t sent = point(points, 1), arrived = point(0, 1);
    to.push_back({.name        = "nas-lu-y",
                  .description = "strided boundary of 162 points of five doubles",
                  .send        = strided_side(array_bytes, {sent, point_bytes, {{points, row_bytes}}}),
                  .receive     = strided_side(array_bytes, {arrived, point_bytes, {{points, row_bytes}}}),
                  .pack =
                      [](array_list from, std::byte* packed) {
                          for (std::size_t y = 0; y < points; ++y) {
                              take<point_bytes>(packed, from[0] + sent + y * row_bytes);
                          }
                      },
                  .unpack =
                      [](const std::byte* packed, array_list into) {
                          for (std::size_t y = 0; y < points; ++y) {
                              give<point_bytes>(packed, into[0] + arrived + y * row_bytes);
                          }
                      }});
}

void add_nas_lu(pattern_list& to)
{
    add_x(to);
    add_y(to);
}

} // namespace examples
