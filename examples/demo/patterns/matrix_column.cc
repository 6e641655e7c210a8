// A column of a row-major matrix: blocks of 8 B, one row apart. Every tutorial starts with this exchange.
#include "parts.h"

namespace examples
{

static constexpr std::size_t rows         = 1024;
static constexpr std::size_t row_bytes    = 1024 * sizeof(double);
static constexpr std::size_t sent_byte    = 3 * sizeof(double);
static constexpr std::size_t arrived_byte = 1020 * sizeof(double);

void add_matrix_column(pattern_list& to)
{
    const auto column = [](std::size_t first) { return strided_part{first, sizeof(double), {{rows, row_bytes}}}; };
    to.push_back({.name        = "column",
                  .description = "one column of a 1024 x 1024 matrix of doubles",
                  .send        = strided_side(rows * row_bytes, column(sent_byte)),
                  .receive     = strided_side(rows * row_bytes, column(arrived_byte)),
                  .pack =
                      [](array_list from, std::byte* packed) {
                          for (std::size_t row = 0; row < rows; ++row) {
                              take<sizeof(double)>(packed, from[0] + sent_byte + row * row_bytes);
                          }
                      },
                  .unpack =
                      [](const std::byte* packed, array_list into) {
                          for (std::size_t row = 0; row < rows; ++row) {
                              give<sizeof(double)>(packed, into[0] + arrived_byte + row * row_bytes);
                          }
                      }});
}

} // namespace examples
