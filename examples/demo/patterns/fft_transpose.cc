// The transpose between the two passes of a 2-D FFT of 2048 x 2048 complex doubles over 16 processes (the FFT2D of
// DDTBench): one block of 128 x 128 numbers goes from the sender's rows into the receiver's columns. The receiver's
// window is the transpose.
#include "parts.h"

namespace examples
{

static constexpr std::size_t side_numbers  = 2048;
static constexpr std::size_t block_numbers = side_numbers / 16; // in each direction
static constexpr std::size_t number_bytes  = 2 * sizeof(double);
static constexpr std::size_t row_bytes     = side_numbers * number_bytes;
static constexpr std::size_t array_bytes   = block_numbers * row_bytes; // a process holds 128 rows
static constexpr std::size_t sent_byte     = 5 * block_numbers * number_bytes;
static constexpr std::size_t arrived_byte  = 11 * block_numbers * number_bytes;

static void pack(array_list from, std::byte* packed)
{
    for (std::size_t row = 0; row < block_numbers; ++row) {
        take<block_numbers * number_bytes>(packed, from[0] + sent_byte + row * row_bytes);
    }
}

// Copies squares of 8 x 8, so that it uses every cache line of both sides as a whole.
static void unpack(const std::byte* packed, array_list to)
{
    constexpr std::size_t square = 8;
    for (std::size_t r0 = 0; r0 < block_numbers; r0 += square) {
        for (std::size_t c0 = 0; c0 < block_numbers; c0 += square) {
            for (std::size_t column = c0; column < c0 + square; ++column) {
                for (std::size_t row = r0; row < r0 + square; ++row) {
                    std::memcpy(to[0] + arrived_byte + column * row_bytes + row * number_bytes,
                                packed + (row * block_numbers + column) * number_bytes, number_bytes);
                }
            }
        }
    }
}

void add_fft_transpose(pattern_list& to)
{
    const strided_part rows{sent_byte, block_numbers * number_bytes, {{block_numbers, row_bytes}}};
    const strided_part columns{arrived_byte, number_bytes, {{block_numbers, number_bytes}, {block_numbers, row_bytes}}};
    to.push_back({.name        = "fft-transpose",
                  .description = "128 x 128 complex doubles of a 2048^2 FFT over 16 processes, transposed on arrival",
                  .send        = strided_side(array_bytes, rows),
                  .receive     = strided_side(array_bytes, columns),
                  .pack        = pack,
                  .unpack      = unpack});
}

} // namespace examples
