// A 2-D tile of a larger matrix of doubles, as distributed dense linear algebra moves it. 512 blocks of 2 KiB.
#include "parts.h"

namespace examples
{

static constexpr std::size_t matrix_rows  = 1024;
static constexpr std::size_t row_bytes    = 1024 * sizeof(double);
static constexpr std::size_t tile_rows    = 512;
static constexpr std::size_t tile_bytes   = 256 * sizeof(double); // of one row
static constexpr std::size_t sent_byte    = 128 * row_bytes + 256 * sizeof(double);
static constexpr std::size_t arrived_byte = 384 * row_bytes + 640 * sizeof(double);

void add_tile(pattern_list& to)
{
    const auto tile = [](std::size_t first) { return strided_part{first, tile_bytes, {{tile_rows, row_bytes}}}; };
    to.push_back({.name        = "tile",
                  .description = "512 x 256 doubles of a 1024 x 1024 matrix",
                  .send        = strided_side(matrix_rows * row_bytes, tile(sent_byte)),
                  .receive     = strided_side(matrix_rows * row_bytes, tile(arrived_byte)),
                  .pack =
                      [](array_list from, std::byte* packed) {
                          for (std::size_t row = 0; row < tile_rows; ++row) {
                              take<tile_bytes>(packed, from[0] + sent_byte + row * row_bytes);
                          }
                      },
                  .unpack =
                      [](const std::byte* packed, array_list into) {
                          for (std::size_t row = 0; row < tile_rows; ++row) {
                              give<tile_bytes>(packed, into[0] + arrived_byte + row * row_bytes);
                          }
                      }});
}

} // namespace examples
