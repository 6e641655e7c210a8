// What the limits of `bench transfer` are made of: the lines a layout touches, and the side that moves them.
#include "bench/common/scratch_folder.h"
#include "footprint.h"
#include "limit_side.h"

#include <numeric>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

using run_text = std::vector<std::string>;

run_text text_of(std::span<const line_run> runs)
{
    run_text made;
    for (const line_run& run : runs) {
        made.push_back(std::to_string(run.first) + "+" + std::to_string(run.count) + (run.whole ? " whole" : ""));
    }
    return made;
}

TEST(footprint, column_touches_a_line_for_each_number)
{
    const footprint column(*vector_of(3, 1, 8192, number(8)), 2 * 8192 + 8, 16);
    EXPECT_EQ(text_of(column.all()), (run_text{"0+1", "128+1", "256+1"}));
    EXPECT_EQ(column.num_lines(), 3);
}

TEST(footprint, lines_that_several_blocks_share_count_once)
{
    // 8 of 32 bytes: two blocks a line, and no gap of a whole line
    const footprint made(*vector_of(8, 1, 32, number(8)), 7 * 32 + 8, 0);
    EXPECT_EQ(text_of(made.all()), (run_text{"0+4"}));
}

TEST(footprint, lines_are_whole_where_no_byte_is_left_out)
{
    const footprint aligned(*vector_of(2, 8, 128, number(8)), 192, 0);
    EXPECT_EQ(text_of(aligned.all()), (run_text{"0+1 whole", "2+1 whole"}));
    const footprint shifted(*vector_of(2, 8, 128, number(8)), 192, 16);
    EXPECT_EQ(text_of(shifted.all()), (run_text{"0+4"}));
    // two fields of 32 bytes that fill every line together
    const type_ptr half = vector_of(2, 4, 64, number(8));
    EXPECT_EQ(text_of(footprint(*record_of({{0, 1, half}, {32, 1, half}}), 128, 0).all()), (run_text{"0+2 whole"}));
}

TEST(footprint, lines_come_as_packed_bytes_visit_them_first)
{
    const type_ptr eight = vector_of(1, 8, 64, number(8));
    EXPECT_EQ(text_of(footprint(*list_of({{128, 1, eight}, {0, 1, eight}, {128, 1, eight}}, nullptr), 192, 0).all()),
              (run_text{"2+1 whole", "0+1 whole"}));
}

TEST(footprint, of_contiguous_memory_is_one_run_and_its_ends)
{
    EXPECT_EQ(text_of(footprint(std::size_t{192}, 0).all()), (run_text{"0+3 whole"}));
    EXPECT_EQ(text_of(footprint(std::size_t{192}, 16).all()), (run_text{"0+1", "1+2 whole", "3+1"}));
    EXPECT_EQ(text_of(footprint(std::size_t{8}, 16).all()), (run_text{"0+1"}));
    EXPECT_TRUE(footprint(std::size_t{0}, 16).all().empty());
    EXPECT_TRUE(footprint().divide(3)[2].empty());
}

TEST(footprint, types_beyond_their_memory_are_refused)
{
    EXPECT_THROW(footprint(*vector_of(2, 1, 64, number(8)), 71, 0), std::out_of_range);
    EXPECT_THROW(footprint(*vector_of(2, 1, -64, number(8)), 4096, 0), std::out_of_range);
    EXPECT_THROW(footprint(*list_of({{INT64_MAX - 7, 1, nullptr}}, number(8)), 4096, 0), std::out_of_range);
}

TEST(footprint, parts_are_the_same_lines_in_the_same_order)
{
    const footprint made(*vector_of(37, 8, 192, number(8)), 36 * 192 + 64, 32);
    for (const std::size_t parts : {1, 2, 5, 37, 74, 100}) {
        std::vector<std::size_t> lines, expected;
        std::size_t shortest = SIZE_MAX, longest = 0;
        const auto add = [](std::vector<std::size_t>& to, const line_run& run) {
            for (std::size_t i = 0; i < run.count; ++i) {
                to.push_back(run.first + i);
            }
        };
        for (const line_run& run : made.all()) {
            add(expected, run);
        }
        const auto divided = made.divide(parts);
        ASSERT_EQ(divided.size(), parts);
        for (const std::vector<line_run>& part : divided) {
            const std::size_t before = lines.size();
            for (const line_run& run : part) {
                add(lines, run);
            }
            shortest = std::min(shortest, lines.size() - before);
            longest  = std::max(longest, lines.size() - before);
        }
        EXPECT_EQ(lines, expected) << parts;
        EXPECT_LE(longest - shortest, 1) << parts;
    }
}

class moved_lines : public testing::TestWithParam<copy_kind>
{
protected:
    static constexpr std::size_t num_lines = 64;
    alignas(line_length) std::byte _from[num_lines * line_length];
    alignas(line_length) std::byte _to[num_lines * line_length];

    void SetUp() override
    {
        for (std::size_t i = 0; i < sizeof(_from); ++i) {
            _from[i] = static_cast<std::byte>(1 + i % 251);
            _to[i]   = std::byte{};
        }
    }

    // Of the source this line, or nothing.
    bool has(std::size_t to_line, std::size_t from_line) const
    {
        return std::memcmp(_to + to_line * line_length, _from + from_line * line_length, line_length) == 0;
    }
    bool is_untouched(std::size_t line) const
    {
        return std::ranges::all_of(std::span(_to).subspan(line * line_length, line_length),
                                   [](std::byte byte) { return byte == std::byte{}; });
    }
};

TEST_P(moved_lines, between_equal_footprints_are_copied_and_gaps_are_not)
{
    const line_run runs[] = {{40, 20, true}, {1, 1, false}, {3, 2, true}, {10, 12, false}};
    line_plan(runs, runs).run(_to, _from, GetParam());
    for (std::size_t line = 0; line < num_lines; ++line) {
        const bool moved = std::ranges::any_of(
            runs, [&](const line_run& run) { return line >= run.first && line < run.first + run.count; });
        EXPECT_TRUE(moved ? has(line, line) : is_untouched(line)) << line;
    }
}

TEST_P(moved_lines, from_more_lines_to_less_write_no_others)
{
    const line_run from[] = {{0, 30, true}, {40, 4, true}}, to[] = {{5, 1, false}, {7, 9, true}};
    line_plan(to, from).run(_to, _from, GetParam());
    EXPECT_TRUE(has(5, 0));
    for (std::size_t line = 0; line < 9; ++line) {
        EXPECT_TRUE(has(7 + line, 1 + line)) << line;
    }
    EXPECT_TRUE(is_untouched(4) && is_untouched(6) && is_untouched(16));
}

TEST_P(moved_lines, from_less_lines_to_more_write_into_each_of_them)
{
    const line_run from[] = {{0, 2, true}}, to[] = {{5, 3, false}, {20, 2, true}};
    line_plan(to, from).run(_to, _from, GetParam());
    EXPECT_TRUE(has(5, 0) && has(6, 1));
    EXPECT_TRUE(is_untouched(4) && is_untouched(8) && is_untouched(19) && is_untouched(22));
}

TEST_P(moved_lines, of_nothing_write_nothing)
{
    line_plan({}, {}).run(_to, _from, GetParam());
    const line_run some[] = {{0, 4, true}};
    line_plan({}, some).run(_to, _from, GetParam());
    for (std::size_t line = 0; line < num_lines; ++line) {
        EXPECT_TRUE(is_untouched(line));
    }
}

TEST_P(moved_lines, at_regular_and_irregular_distances_are_the_same_lines)
{
    const line_run to[]   = {{0, 1, true},  {2, 1, true},  {4, 1, true}, {5, 1, true},
                             {40, 2, true}, {30, 2, true}, {20, 2, true}};
    const line_run from[] = {{60, 1, true}, {50, 1, true}, {40, 1, true}, {30, 1, true},
                             {1, 2, true},  {3, 2, true},  {9, 2, true}};
    line_plan(to, from).run(_to, _from, GetParam());
    for (std::size_t i = 0; i < std::size(to); ++i) {
        for (std::size_t line = 0; line < to[i].count; ++line) {
            EXPECT_TRUE(has(to[i].first + line, from[i].first + line)) << i << ' ' << line;
        }
    }
    EXPECT_TRUE(is_untouched(1) && is_untouched(3) && is_untouched(6) && is_untouched(8) && is_untouched(32));
}

INSTANTIATE_TEST_SUITE_P(kinds, moved_lines, testing::Values(copy_kind::plain, copy_kind::streaming),
                         [](const auto& param) { return param.param == copy_kind::plain ? "plain" : "streaming"; });

constexpr std::size_t side_length = std::size_t{16} << 20;

int serve(bool is_first, const std::string& path, const std::string& fifo)
{
    try {
        side_loop([&] { return std::make_unique<limit_side>(is_first); }, is_first, path, side_length).serve(fifo);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s process: %s\n", is_first ? "first" : "second", error.what());
        return 1;
    }
    return 0;
}

std::string answers_to(const std::string& text)
{
    scratch_folder folder;
    const std::string fifo = folder.add_fifo("lines");
    const shared_memory memory(pair_length(side_length));
    const std::string path = memory.path();
    const pid_t second     = fork();
    if (second == 0) {
        _exit(serve(false, path, fifo));
    }
    std::istringstream lines(text);
    std::ostringstream answers;
    std::streambuf* const input  = std::cin.rdbuf(lines.rdbuf());
    std::streambuf* const output = std::cout.rdbuf(answers.rdbuf());
    const int status             = serve(true, path, fifo);
    std::cin.rdbuf(input);
    std::cout.rdbuf(output);
    EXPECT_EQ(status, 0);
    int ended = -1;
    EXPECT_EQ(waitpid(second, &ended, 0), second);
    EXPECT_EQ(ended, 0);
    return answers.str();
}

// A side compares by itself what its ring and its passes carry.
TEST(limit_sides, carry_the_bytes_of_contiguous_memory_of_any_length)
{
    std::string lines, expected;
    for (const std::size_t length : {1, 8, 63, 64, 65, 1024, 4096, 8127, 8128, 8129, 16256, 100001, 1 << 20}) {
        lines += "bytes " + std::to_string(length) + "\n";
        expected += std::to_string(length) + "\n";
    }
    EXPECT_EQ(answers_to(lines), expected);
}

TEST(limit_sides, carry_the_lines_of_every_short_case)
{
    std::string lines;
    std::size_t num                     = 0;
    const std::vector<case_maker> cases = transfer_cases();
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (cases[i].payload > 131072) {
            continue;
        }
        const layout_case made = cases[i].make();
        if (2 * made.extent + 2 * made.length + (std::size_t{1} << 16) < side_length) {
            lines += "case " + std::to_string(i) + "\n";
            ++num;
        }
    }
    const std::string answers = answers_to(lines);
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(answers, '\n')), num);
    EXPECT_GT(num, 10);
}

TEST(limit_sides, measure_every_limit)
{
    std::string lines = "case 4\n";
    for (const limit by : all_limits) {
        for (const char* ending : {"-sc", "-ss"}) {
            for (const bool streaming : {false, true}) {
                lines += "run " + name_of(by, streaming) + ending + " 3\n";
            }
        }
    }
    std::istringstream answers(answers_to(lines));
    double length = 0, seconds = 0;
    unsigned num = 0;
    answers >> length;
    while (answers >> seconds) {
        EXPECT_GT(seconds, 0);
        ++num;
    }
    EXPECT_EQ(num, 16);
}

} // namespace
} // namespace ucxl::bench
