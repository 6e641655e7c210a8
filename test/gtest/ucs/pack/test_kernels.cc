#include "guarded.h"

#include "ucs/pack/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#ifdef __aarch64__
#include "sys/processor.h"

#include <sys/prctl.h>
#include <thread>
#endif

namespace
{

using namespace ucxl;
using ucxl::test::guard_side;
using ucxl::test::guarded_memory;

struct shape {
    block_run run;
    std::int64_t low = 0; // of the first byte, from the first block
    std::size_t extent;

    explicit shape(const block_run& of) : run(of)
    {
        std::int64_t high = 0;
        each([&](std::int64_t at) {
            low  = std::min(low, at);
            high = std::max(high, at);
        });
        extent = static_cast<std::size_t>(high - low) + run.length;
    }

    template <typename Fn>
    void each(Fn&& fn) const
    {
        for (std::uint64_t row = 0; row < run.outer_count; ++row) {
            for (std::uint64_t i = 0; i < run.count; ++i) {
                fn(static_cast<std::int64_t>(row) * run.outer_stride + static_cast<std::int64_t>(i) * run.stride);
            }
        }
    }
};

void fill(std::span<std::byte> bytes, unsigned start)
{
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(start + i * 7 + i / 251);
    }
}

void check(const block_kernels& kernels, const block_run& run, guard_side side)
{
    const shape of(run);
    const guarded_memory memory(of.extent, side), packed(run.packed_length(), side);
    std::byte* base = memory.data() - of.low;
    fill(memory.bytes(), 1);
    fill(packed.bytes(), 101);

    std::vector<std::byte> expected;
    of.each([&](std::int64_t at) { expected.insert(expected.end(), base + at, base + at + run.length); });
    kernels.gather(packed.data(), base, run);
    ASSERT_TRUE(std::ranges::equal(expected, packed.bytes())) << "gather";

    fill(packed.bytes(), 77);
    std::vector<std::byte> image(memory.bytes().begin(), memory.bytes().end());
    std::size_t from = 0;
    of.each([&](std::int64_t at) {
        std::memcpy(image.data() + (at - of.low), packed.data() + from, run.length);
        from += run.length;
    });
    kernels.scatter(base, packed.data(), run);
    ASSERT_TRUE(std::ranges::equal(image, memory.bytes())) << "scatter";
}

void check(const kernel_library& library, const block_run& run, guard_side side)
{
    check(library.blocks(run), run, side);
}

void check_move(const block_kernels& kernels, const block_run& run, std::int64_t other_stride)
{
    const shape to({.length = run.length, .count = run.count, .stride = other_stride}), from(run);
    const guarded_memory target(to.extent, guard_side::back), origin(from.extent, guard_side::front);
    fill(target.bytes(), 1);
    fill(origin.bytes(), 99);
    std::vector<std::byte> image(target.bytes().begin(), target.bytes().end());
    for (std::uint64_t i = 0; i < run.count; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        std::memcpy(image.data() + (at * other_stride - to.low), origin.data() + (at * run.stride - from.low),
                    run.length);
    }
    kernels.move(target.data() - to.low, other_stride, origin.data() - from.low, run.stride, run.count, run.length);
    ASSERT_TRUE(std::ranges::equal(image, target.bytes()));
}

void check_move(const kernel_library& library, const block_run& run, std::int64_t other_stride)
{
    check_move(library.blocks(run), run, other_stride);
}

// The words of `places` of each iteration.
word_map map_of(const std::vector<std::uint8_t>& places, std::int64_t stride)
{
    word_map map;
    std::ranges::copy(places, map.at.begin());
    map.words = static_cast<std::uint32_t>(places.size());
    map.repeat(stride);
    return map;
}

void check_permute(const permute_kernels& kernels, const word_map& map, std::int64_t stride, std::uint64_t count,
                   guard_side side)
{
    const std::size_t word = word_map::word, cycle = map.words * word;
    const auto last        = static_cast<std::size_t>(*std::max_element(map.at.begin(), map.at.begin() + map.words));
    const std::size_t size = static_cast<std::size_t>(stride) * (count - 1) + (last + 1) * word;
    const guarded_memory memory(size, side), packed(cycle * count, side), other(size, side);
    const auto each = [&](auto&& fn) {
        for (std::size_t i = 0; i < count * map.words; ++i) {
            fn(i * word, i / map.words * static_cast<std::size_t>(stride) + map.at[i % map.words] * word);
        }
    };
    fill(memory.bytes(), 1);
    std::vector<std::byte> image(packed.bytes().begin(), packed.bytes().end());
    each([&](std::size_t to, std::size_t from) { std::memcpy(&image[to], memory.data() + from, word); });
    kernels.gather(packed.data(), memory.data(), stride, count, map);
    ASSERT_TRUE(std::ranges::equal(image, packed.bytes())) << "gather";

    fill(packed.bytes(), 77);
    image.assign(memory.bytes().begin(), memory.bytes().end());
    each([&](std::size_t from, std::size_t to) { std::memcpy(&image[to], packed.data() + from, word); });
    kernels.scatter(memory.data(), packed.data(), stride, count, map);
    ASSERT_TRUE(std::ranges::equal(image, memory.bytes())) << "scatter";

    fill(other.bytes(), 150);
    image.assign(other.bytes().begin(), other.bytes().end());
    each([&](std::size_t, std::size_t at) { std::memcpy(&image[at], memory.data() + at, word); });
    kernels.move(other.data(), memory.data(), stride, count, map);
    ASSERT_TRUE(std::ranges::equal(image, other.bytes())) << "move";
}

// Words of records, some of them more than once or more than a vector of memory apart, and their strides.
const std::vector<std::pair<std::vector<std::uint8_t>, std::int64_t>> records_of_words{
    {{0, 1, 2, 4, 5, 6}, 40},
    {{0}, 4},
    {{0}, 12},
    {{0, 2}, 12},
    {{2, 0, 1}, 16},
    {{0, 0, 1}, 8},
    {{0, 31}, 128},
    {{0, 4}, 4},
    {{3, 1, 0, 15, 14, 8, 9, 2, 4, 5, 6, 7, 10, 11, 12, 13}, 64},
};

std::vector<std::uint64_t> lengths()
{
    std::vector<std::uint64_t> all(600);
    std::iota(all.begin(), all.end(), 1);
    all.insert(all.end(), {1000, 1024, 4096, 4097, 20000});
    return all;
}

using library_and_guard = std::tuple<const kernel_library*, guard_side>;

class kernels : public testing::TestWithParam<library_and_guard>
{
public:
    static const kernel_library& library() { return *std::get<0>(GetParam()); }
    static guard_side guard() { return std::get<1>(GetParam()); }
};

TEST_P(kernels, every_length_moves_odd_counts_both_ways)
{
    for (const std::uint64_t length : lengths()) {
        for (const std::uint64_t count : {1, 2, 3, 4, 5, 7, 17}) {
            SCOPED_TRACE(testing::Message() << "length " << length << " count " << count);
            const auto near = static_cast<std::int64_t>(length + 1);
            ASSERT_NO_FATAL_FAILURE(check(library(), {.length = length, .count = count, .stride = near}, guard()));
        }
    }
}

TEST_P(kernels, negative_and_wide_strides_reach_every_block)
{
    for (const std::uint64_t length : lengths()) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto wide = static_cast<std::int64_t>(length * 2 + 13);
        ASSERT_NO_FATAL_FAILURE(check(library(), {.length = length, .count = 9, .stride = -wide}, guard()));
        ASSERT_NO_FATAL_FAILURE(check(library(), {.length = length, .count = 9, .stride = wide}, guard()));
    }
}

TEST_P(kernels, far_blocks_are_gathered_and_scattered)
{
    for (const std::uint64_t length : {1, 4, 8, 12, 16, 33, 64, 100, 128, 129}) {
        for (const std::int64_t stride : {1024, -1024, 2048, 8192, 2050, -5000}) {
            SCOPED_TRACE(testing::Message() << "length " << length << " stride " << stride);
            ASSERT_NO_FATAL_FAILURE(check(library(), {.length = length, .count = 47, .stride = stride}, guard()));
            ASSERT_NO_FATAL_FAILURE(check(library(),
                                          {.length       = length,
                                           .count        = 41,
                                           .stride       = stride,
                                           .outer_count  = 3,
                                           .outer_stride = static_cast<std::int64_t>(length) + 3},
                                          guard()));
        }
    }
}

TEST_P(kernels, two_loops_follow_both_strides)
{
    for (const std::uint64_t length : lengths()) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto wide = static_cast<std::int64_t>(length + 5);
        ASSERT_NO_FATAL_FAILURE(check(
            library(), {.length = length, .count = 3, .stride = wide, .outer_count = 5, .outer_stride = 3 * wide + 11},
            guard()));
        ASSERT_NO_FATAL_FAILURE(check(
            library(), {.length = length, .count = 5, .stride = 3 * wide, .outer_count = 3, .outer_stride = -wide},
            guard()));
    }
}

TEST_P(kernels, many_small_blocks_of_words_at_strides_of_words)
{
    for (const std::uint64_t length : {4, 8, 12, 16, 20, 24, 28, 32}) {
        for (const std::uint64_t count : {15, 16, 17, 18, 19, 33, 100}) {
            for (const std::int64_t gap : {0, 4, 8, 20, 52, 100}) {
                SCOPED_TRACE(testing::Message() << length << " + " << gap << ", " << count);
                const std::int64_t stride = static_cast<std::int64_t>(length) + gap;
                ASSERT_NO_FATAL_FAILURE(
                    check(library(), {.length = length, .count = count, .stride = stride}, guard()));
                ASSERT_NO_FATAL_FAILURE(check(
                    library(), {length, count, stride, 3, stride * static_cast<std::int64_t>(count) + 3}, guard()));
                // overlapping: what comes last remains
                ASSERT_NO_FATAL_FAILURE(check(library(), {.length = length, .count = count, .stride = 4}, guard()));
            }
        }
    }
}

// The packed rows with gaps between them.
void check_panel(const kernel_library& library, const block_run& run, std::uint64_t gap, guard_side side)
{
    const shape of(run);
    const std::uint64_t pitch = run.row_length() + gap;
    const guarded_memory memory(of.extent, side), packed(pitch * (run.outer_count - 1) + run.row_length(), side);
    std::byte* base = memory.data() - of.low;
    fill(memory.bytes(), 1);
    fill(packed.bytes(), 101);
    const auto each = [&](auto&& fn) {
        std::uint64_t number = 0;
        of.each([&](std::int64_t at) {
            fn(static_cast<std::size_t>(at - of.low), number / run.count * pitch + number % run.count * run.length);
            ++number;
        });
    };
    const block_panel panel{.count      = run.count,
                            .stride     = run.stride,
                            .rows       = run.outer_count,
                            .row_stride = run.outer_stride,
                            .pitch      = static_cast<std::int64_t>(pitch)};

    std::vector<std::byte> image(packed.bytes().begin(), packed.bytes().end());
    each([&](std::size_t in_memory, std::size_t in_packed) {
        std::memcpy(image.data() + in_packed, memory.data() + in_memory, run.length);
    });
    library.blocks(run).gather_panel(packed.data(), base, panel);
    ASSERT_TRUE(std::ranges::equal(image, packed.bytes())) << "gather";

    fill(packed.bytes(), 33);
    image.assign(memory.bytes().begin(), memory.bytes().end());
    each([&](std::size_t in_memory, std::size_t in_packed) {
        std::memcpy(image.data() + in_memory, packed.data() + in_packed, run.length);
    });
    library.blocks(run).scatter_panel(base, packed.data(), panel);
    ASSERT_TRUE(std::ranges::equal(image, memory.bytes())) << "scatter";
}

TEST_P(kernels, panels_move_their_blocks_only)
{
    for (const std::uint64_t length : {1, 2, 4, 8, 12, 16, 20, 24, 28, 32}) {
        for (const std::uint64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 21}) {
            for (const std::uint64_t count : {1, 2, 15, 16, 17, 33}) {
                SCOPED_TRACE(testing::Message() << length << ": " << rows << " x " << count);
                const auto close = static_cast<std::int64_t>(length), apart = close + 3;
                const auto stride = static_cast<std::int64_t>(rows) * apart + 5;
                ASSERT_NO_FATAL_FAILURE(check_panel(library(), {length, count, stride, rows, close}, 0, guard()));
                ASSERT_NO_FATAL_FAILURE(check_panel(library(), {length, count, -stride, rows, apart}, 1, guard()));
                ASSERT_NO_FATAL_FAILURE(check_panel(library(), {length, count, stride, rows, -close}, 64, guard()));
            }
        }
    }
}

// They begin at each number of a line: where a guarded memory ends with its page, its length decides.
TEST_P(kernels, panels_of_rows_that_are_whole_lines_begin_anywhere_in_a_line)
{
    constexpr std::uint64_t length = 8, line = cache_line / length;
    const auto whole_lines = [](std::uint64_t numbers) { return (numbers + line - 1) / line * cache_line; };
    for (const std::uint64_t rows : {63, 64, 65, 67, 70, 71, 129}) {
        for (const std::uint64_t count : {63, 64, 66, 68, 71, 77, 136}) {
            SCOPED_TRACE(testing::Message() << rows << " x " << count);
            const auto stride       = static_cast<std::int64_t>(whole_lines(rows));
            const std::uint64_t gap = whole_lines(count) - count * length;
            ASSERT_NO_FATAL_FAILURE(check_panel(library(), {length, count, stride, rows, length}, gap, guard()));
            ASSERT_NO_FATAL_FAILURE(check_panel(library(), {length, count, -stride, rows, length}, gap, guard()));
        }
    }
}

TEST_P(kernels, long_odd_blocks_have_no_panels)
{
    for (const std::uint64_t length : {3, 7, 30, 36, 64, 100, 1000}) {
        EXPECT_EQ(library().blocks({.length = length}).gather_panel, nullptr) << length;
        EXPECT_EQ(library().blocks({.length = length}).scatter_panel, nullptr) << length;
    }
}

TEST_P(kernels, rows_of_every_length_go_where_the_table_says)
{
    for (std::uint64_t length = 1; length <= 64; ++length) {
        const row_kernels* moves = library().rows(length);
        ASSERT_NE(moves, nullptr) << length;
        for (const std::uint64_t count : {0, 1, 2, 3, 4, 5, 11}) {
            SCOPED_TRACE(testing::Message() << length << ": " << count);
            const std::uint64_t stride = length + 5;
            const guarded_memory memory(count == 0 ? 0 : stride * (count - 1) + length, guard());
            const guarded_memory packed(count * length, guard());
            std::vector<table_row> rows;
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t place = count - 1 - i;
                rows.push_back({static_cast<std::int64_t>(place * stride) - 40, static_cast<std::uint32_t>(length), 0});
            }
            const auto place_of = [&](std::uint64_t i) { return static_cast<std::size_t>(rows[i].offset + 40); };
            fill(memory.bytes(), 3);
            std::vector<std::byte> expected;
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::byte* block = memory.data() + place_of(i);
                expected.insert(expected.end(), block, block + length);
            }
            moves->gather(packed.data(), memory.data() + 40, rows.data(), count);
            ASSERT_TRUE(std::ranges::equal(expected, packed.bytes())) << "gather";

            fill(packed.bytes(), 90);
            expected.assign(memory.bytes().begin(), memory.bytes().end());
            for (std::uint64_t i = 0; i < count; ++i) {
                std::memcpy(expected.data() + place_of(i), packed.data() + i * length, length);
            }
            moves->scatter(memory.data() + 40, packed.data(), rows.data(), count);
            ASSERT_TRUE(std::ranges::equal(expected, memory.bytes())) << "scatter";

            const guarded_memory other(memory.bytes().size(), guard());
            fill(other.bytes(), 55);
            expected.assign(other.bytes().begin(), other.bytes().end());
            for (std::uint64_t i = 0; i < count; ++i) {
                std::memcpy(expected.data() + place_of(i), memory.data() + place_of(i), length);
            }
            moves->move(other.data() + 40, memory.data() + 40, rows.data(), count);
            ASSERT_TRUE(std::ranges::equal(expected, other.bytes())) << "move";
        }
    }
    EXPECT_EQ(library().rows(0), nullptr);
    EXPECT_EQ(library().rows(65), nullptr);
}

TEST_P(kernels, every_alignment_of_both_sides)
{
    for (const std::uint64_t length : {1, 3, 8, 12, 16, 24, 32, 48, 63, 64, 65, 100, 128, 256, 300, 1000}) {
        // With bytes around the blocks on both sides.
        std::vector<std::byte> memory(4 * length + 6 * 64), packed(3 * length + 2 * 64), image;
        const block_run run{.length = length, .count = 3, .stride = static_cast<std::int64_t>(length + 9)};
        const block_kernels& moves = library().blocks(run);
        const shape blocks(run);
        fill(memory, 3);
        fill(packed, 120);
        for (std::size_t from = 0; from < 64; ++from) {
            for (std::size_t to = 0; to < 64; ++to) {
                std::byte *const base = &memory[64 + from], *const contiguous = &packed[32 + to];
                image           = packed;
                std::byte* next = &image[32 + to];
                blocks.each([&](std::int64_t at) { next = std::copy_n(base + at, length, next); });
                moves.gather(contiguous, base, run);
                ASSERT_EQ(image, packed) << "gather " << length << ' ' << from << ' ' << to;

                fill(std::span(packed).subspan(32 + to, 3 * length), static_cast<unsigned>(from + to));
                image                 = memory;
                const std::byte* left = contiguous;
                blocks.each([&](std::int64_t at) {
                    std::copy_n(left, length, &image[64 + from] + at);
                    left += length;
                });
                moves.scatter(base, contiguous, run);
                ASSERT_EQ(image, memory) << "scatter " << length << ' ' << from << ' ' << to;
            }
        }
    }
}

TEST_P(kernels, move_keeps_to_both_strides)
{
    for (const std::uint64_t length : lengths()) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto wide = static_cast<std::int64_t>(length + 3);
        ASSERT_NO_FATAL_FAILURE(check_move(library(), {.length = length, .count = 7, .stride = wide}, wide + 20));
        ASSERT_NO_FATAL_FAILURE(check_move(library(), {.length = length, .count = 6, .stride = -wide}, wide));
        ASSERT_NO_FATAL_FAILURE(check_move(library(), {.length = length, .count = 1, .stride = 0}, 0));
    }
}

// Rows of these lengths, the last one first in memory and 5 bytes between them. They are of one base address, and their
// source is not looked at; or of two sources in turn, whose base addresses are 1000 bytes apart.
class checked_table
{
public:
    checked_table(const std::vector<std::uint32_t>& lengths, bool has_sources) : _has_sources(has_sources)
    {
        _places.resize(lengths.size());
        for (std::size_t i = lengths.size(); i-- > 0;) {
            _places[i] = _extent;
            _extent += lengths[i] + (i > 0 ? 5 : 0);
            _packed_length += lengths[i];
        }
        for (std::uint32_t i = 0; i < lengths.size(); ++i) {
            const std::uint32_t source = has_sources ? i % 2 : 9;
            _rows.push_back(
                {static_cast<std::int64_t>(_places[i]) - (has_sources ? 40 + 1000 * source : 40), lengths[i], source});
        }
    }

    void check(const table_kernels& kernels, guard_side side) const
    {
        const guarded_memory memory(_extent, side), packed(_packed_length, side), other(_extent, side);
        fill(memory.bytes(), 3);
        std::vector<std::byte> image(_packed_length);
        each([&](std::size_t to, std::size_t from, std::size_t length) {
            std::copy_n(memory.data() + from, length, image.begin() + static_cast<std::ptrdiff_t>(to));
        });
        ASSERT_EQ(gather(kernels, packed.data(), memory.data()), packed.data() + _packed_length);
        ASSERT_TRUE(std::ranges::equal(image, packed.bytes())) << "gather";

        fill(packed.bytes(), 90);
        image.assign(memory.bytes().begin(), memory.bytes().end());
        each([&](std::size_t from, std::size_t to, std::size_t length) {
            std::copy_n(packed.data() + from, length, image.begin() + static_cast<std::ptrdiff_t>(to));
        });
        ASSERT_EQ(scatter(kernels, memory.data(), packed.data()), packed.data() + _packed_length);
        ASSERT_TRUE(std::ranges::equal(image, memory.bytes())) << "scatter";

        fill(other.bytes(), 180);
        image.assign(other.bytes().begin(), other.bytes().end());
        each([&](std::size_t, std::size_t at, std::size_t length) {
            std::copy_n(memory.data() + at, length, image.begin() + static_cast<std::ptrdiff_t>(at));
        });
        move(kernels, other.data(), memory.data());
        ASSERT_TRUE(std::ranges::equal(image, other.bytes())) << "move";
    }

private:
    using base_addresses = std::array<std::byte*, 2>;

    // Calls fn(packed, memory, length) for each row.
    template <typename Fn>
    void each(Fn&& fn) const
    {
        std::size_t packed = 0;
        for (std::size_t i = 0; i < _rows.size(); packed += _rows[i++].length) {
            fn(packed, _places[i], _rows[i].length);
        }
    }

    // With an offset of -20.
    static base_addresses bases(std::byte* memory) { return {memory + 60, memory + 1060}; }

    std::byte* gather(const table_kernels& kernels, std::byte* packed, std::byte* memory) const
    {
        return _has_sources ? kernels.gather_sources(packed, bases(memory).data(), -20, _rows.data(), _rows.size())
                            : kernels.gather(packed, memory + 40, _rows.data(), _rows.size());
    }

    const std::byte* scatter(const table_kernels& kernels, std::byte* memory, const std::byte* packed) const
    {
        return _has_sources ? kernels.scatter_sources(bases(memory).data(), -20, packed, _rows.data(), _rows.size())
                            : kernels.scatter(memory + 40, packed, _rows.data(), _rows.size());
    }

    void move(const table_kernels& kernels, std::byte* to, std::byte* from) const
    {
        if (_has_sources) {
            kernels.move_sources(bases(to).data(), bases(from).data(), -20, _rows.data(), _rows.size());
        } else {
            kernels.move(to + 40, from + 40, _rows.data(), _rows.size());
        }
    }

    bool _has_sources;
    std::vector<table_row> _rows;
    std::vector<std::size_t> _places; // in memory
    std::size_t _extent = 0, _packed_length = 0;
};

void check_tables(const table_kernels& kernels, guard_side side)
{
    for (std::uint32_t length = 0; length <= 700; ++length) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        for (const bool has_sources : {false, true}) {
            ASSERT_NO_FATAL_FAILURE(checked_table({length}, has_sources).check(kernels, side));
            ASSERT_NO_FATAL_FAILURE(
                checked_table({length, 0, 64, length * 7 % 701, length}, has_sources).check(kernels, side));
        }
    }
}

TEST_P(kernels, tables_copy_rows_of_every_length)
{
    check_tables(library().tables, guard());
}

void check_copy(void (*copy)(std::byte* to, const std::byte* from, std::size_t length), guard_side side)
{
    std::vector<std::uint64_t> all = lengths();
    all.push_back(0);
    for (const std::uint64_t length : all) {
        const guarded_memory to(length, side), from(length, side);
        fill(from.bytes(), static_cast<unsigned>(length));
        copy(to.data(), from.data(), length);
        ASSERT_TRUE(std::ranges::equal(from.bytes(), to.bytes())) << length;
    }
}

TEST_P(kernels, copy_moves_every_length)
{
    check_copy(library().copy, guard());
}

TEST_P(kernels, streaming_copies_every_length)
{
    check_copy(library().streaming->copy, guard());
}

TEST_P(kernels, streaming_tables_copy_rows_of_every_length)
{
    check_tables(library().streaming->tables, guard());
}

TEST_P(kernels, streaming_moves_blocks_of_every_length)
{
    const block_kernels& blocks = library().streaming->blocks;
    for (const std::uint64_t length : lengths()) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto near = static_cast<std::int64_t>(length + 1), wide = static_cast<std::int64_t>(length * 2 + 13);
        ASSERT_NO_FATAL_FAILURE(check(blocks, {.length = length, .count = 9, .stride = -wide}, guard()));
        ASSERT_NO_FATAL_FAILURE(check(blocks, {length, 5, near, 3, 5 * near + 11}, guard()));
        ASSERT_NO_FATAL_FAILURE(check_move(blocks, {.length = length, .count = 7, .stride = near}, -wide));
    }
}

// What is written of them are whole lines, also where a guarded memory ends with its page.
TEST_P(kernels, streaming_moves_whole_lines)
{
    const block_kernels& lines = library().streaming->lines;
    for (std::uint64_t length = cache_line; length <= 20 * cache_line; length += cache_line) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto near = static_cast<std::int64_t>(length), wide = static_cast<std::int64_t>(length + 3 * cache_line);
        for (const std::uint64_t count : {1, 2, 3, 4, 5, 7}) {
            ASSERT_NO_FATAL_FAILURE(check(lines, {.length = length, .count = count, .stride = near}, guard()));
            ASSERT_NO_FATAL_FAILURE(check(lines, {.length = length, .count = count, .stride = -wide}, guard()));
            ASSERT_NO_FATAL_FAILURE(check(lines, {length, count, wide, 3, 7 * wide + near}, guard()));
            ASSERT_NO_FATAL_FAILURE(check_move(lines, {.length = length, .count = count, .stride = near + 5}, wide));
        }
    }
}

// Each block of the group in memory of its own; `gap` bytes behind each iteration of the packed bytes and some behind
// each block, both without if it is 0.
void check_group(const kernel_library& library, const std::vector<std::uint64_t>& lengths, std::uint64_t count,
                 guard_side side, std::uint64_t gap)
{
    const group_kernels* group = library.group(lengths);
    ASSERT_NE(group, nullptr);
    const std::uint64_t bytes = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}), cycle = bytes + gap;
    const guarded_memory packed(cycle * (count - 1) + bytes, side);
    fill(packed.bytes(), 5);
    std::vector<std::byte> image(packed.bytes().begin(), packed.bytes().end());
    std::vector<std::unique_ptr<guarded_memory>> memory;
    std::vector<block_column> columns;
    std::uint64_t into = 0;
    for (const std::uint64_t length : lengths) {
        const std::uint64_t stride = length + gap * lengths.size();
        memory.push_back(std::make_unique<guarded_memory>(stride * (count - 1) + length, side));
        fill(memory.back()->bytes(), static_cast<unsigned>(length * 3 + into));
        columns.push_back({memory.back()->data(), static_cast<std::int64_t>(stride)});
        for (std::uint64_t i = 0; i < count; ++i) {
            std::memcpy(image.data() + i * cycle + into, memory.back()->data() + i * stride, length);
        }
        into += length;
    }
    group->gather(packed.data(), static_cast<std::int64_t>(cycle), columns.data(), count);
    ASSERT_TRUE(std::ranges::equal(image, packed.bytes()));

    fill(packed.bytes(), 200);
    into = 0;
    std::vector<std::vector<std::byte>> images;
    for (std::size_t k = 0; k < lengths.size(); ++k) {
        images.emplace_back(memory[k]->bytes().begin(), memory[k]->bytes().end());
        for (std::uint64_t i = 0; i < count; ++i) {
            std::memcpy(images[k].data() + i * static_cast<std::uint64_t>(columns[k].stride),
                        packed.data() + i * cycle + into, lengths[k]);
        }
        into += lengths[k];
    }
    group->scatter(columns.data(), packed.data(), static_cast<std::int64_t>(cycle), count);
    for (std::size_t k = 0; k < lengths.size(); ++k) {
        ASSERT_TRUE(std::ranges::equal(images[k], memory[k]->bytes())) << k;
    }
}

TEST_P(kernels, every_group_moves_its_blocks_only)
{
    for (const std::uint64_t a : {4, 8, 12, 16}) {
        for (const std::uint64_t b : {4, 8, 12, 16}) {
            for (const std::uint64_t count : {1, 2, 3, 4, 8, 15}) {
                SCOPED_TRACE(testing::Message() << a << ' ' << b << " count " << count);
                ASSERT_NO_FATAL_FAILURE(check_group(library(), {a, b}, count, guard(), 3));
                ASSERT_NO_FATAL_FAILURE(check_group(library(), {a, b}, count, guard(), 0));
                for (const std::uint64_t c : {4, 8, 12, 16}) {
                    ASSERT_NO_FATAL_FAILURE(check_group(library(), {a, b, c}, count, guard(), 3));
                    ASSERT_NO_FATAL_FAILURE(check_group(library(), {a, b, c}, count, guard(), 0));
                }
            }
        }
    }
}

TEST_P(kernels, other_groups_are_refused)
{
    const std::uint64_t lengths[] = {8, 12, 16, 4, 20, 8, 3, 8};
    const std::span<const std::uint64_t> all(lengths);
    EXPECT_EQ(library().group(all.first(1)), nullptr);
    EXPECT_EQ(library().group(all.first(4)), nullptr);
    EXPECT_EQ(library().group(all.subspan(3, 2)), nullptr);
    EXPECT_EQ(library().group(all.subspan(5, 3)), nullptr);
}

TEST_P(kernels, permutations_move_the_words_of_records_only)
{
    for (const auto& [places, stride] : records_of_words) {
        const word_map map = map_of(places, stride);
        if (const permute_kernels* permute = library().permute(map)) {
            for (const std::uint64_t count : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 40}) {
                SCOPED_TRACE(testing::Message()
                             << testing::PrintToString(places) << " stride " << stride << " x " << count);
                ASSERT_NO_FATAL_FAILURE(check_permute(*permute, map, stride, count, guard()));
            }
        }
    }
}

#ifdef __aarch64__
// The library chooses by the vectors of the thread that compiles a plan; any thread may run the plan.
TEST_P(kernels, those_that_one_thread_chose_run_in_a_thread_with_shorter_vectors)
{
    std::vector<const block_kernels*> of_length;
    for (std::uint64_t length = 1; length <= 64; ++length) {
        of_length.push_back(&library().blocks({.length = length}));
    }
    std::vector<const permute_kernels*> of_records;
    for (const auto& [places, stride] : records_of_words) {
        of_records.push_back(library().permute(map_of(places, stride)));
    }
    std::thread([&] {
        if (has_sve()) {
            ASSERT_EQ(prctl(PR_SVE_SET_VL, 16), 16);
        }
        for (std::uint64_t length = 1; length <= 64; ++length) {
            SCOPED_TRACE(testing::Message() << "length " << length);
            const block_run run{.length = length, .count = 7, .stride = static_cast<std::int64_t>(length + 5)};
            ASSERT_NO_FATAL_FAILURE(check(*of_length[length - 1], run, guard()));
            ASSERT_NO_FATAL_FAILURE(check_move(*of_length[length - 1], run, run.stride + 20));
        }
        for (std::size_t i = 0; i < of_records.size(); ++i) {
            if (of_records[i] != nullptr) {
                const auto& [places, stride] = records_of_words[i];
                SCOPED_TRACE(testing::Message() << testing::PrintToString(places) << " stride " << stride);
                ASSERT_NO_FATAL_FAILURE(check_permute(*of_records[i], map_of(places, stride), stride, 20, guard()));
            }
        }
    }).join();
}
#endif

INSTANTIATE_TEST_SUITE_P(library, kernels,
                         testing::Combine(testing::ValuesIn(usable_kernels().begin(), usable_kernels().end()),
                                          testing::Values(guard_side::front, guard_side::back)),
                         [](const auto& of) {
                             return std::string(std::get<0>(of.param)->name) +
                                    (std::get<1>(of.param) == guard_side::front ? "_front" : "_back");
                         });

} // namespace
