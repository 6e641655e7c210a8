// What `bench device` says of its rows: the last line is read by programs.
#include "device_row.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

device_cost cost_of(const std::string& method, double work_requests, double bytes_copied)
{
    return {.method = method, .work_requests = work_requests, .bytes_copied = bytes_copied};
}

device_row row_of(const std::string& pattern, const std::string& operation, double work_requests, double bytes_copied)
{
    return {
        .pattern          = pattern,
        .operation        = operation,
        .length           = 4096,
        .num_blocks       = 64,
        .has_keys_by_cost = true,
        .methods = {cost_of("window-" + operation, work_requests, bytes_copied), cost_of("block-puts", 1000, 4096)}};
}

std::size_t lines_of(const std::string& text)
{
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(device_summary, names_the_row_with_most_work_requests)
{
    EXPECT_EQ(
        device_summary({row_of("face", "message", 4, 0), row_of("cache", "put", 6, 0), row_of("tile", "put", 1, 0)}),
        "device: 3 rows, 3 without a byte copied by a CPU, most work requests 6 (cache put)");
}

TEST(device_summary, counts_what_windows_copy_and_not_what_others_do)
{
    EXPECT_EQ(device_summary({row_of("face", "message", 4, 0), row_of("cache", "put", 1, 1)}),
              "device: 2 rows, 1 without a byte copied by a CPU, most work requests 4 (face message)");
}

TEST(device_summary, shows_a_count_that_is_not_whole)
{
    EXPECT_EQ(device_summary({row_of("face", "put", 1.125, 0)}),
              "device: 1 rows, 1 without a byte copied by a CPU, most work requests 1.12 (face put)");
}

TEST(device_summary, says_that_there_are_no_rows)
{
    EXPECT_EQ(device_summary({}), "device: 0 rows, 0 without a byte copied by a CPU, most work requests 0 (none)");
}

TEST(device_table, has_a_head_and_the_rows_of_one_operation)
{
    const device_rows rows{row_of("face", "message", 4, 0), row_of("face", "put", 1, 0), row_of("tile", "put", 1, 0)};
    EXPECT_EQ(lines_of(device_table(rows, "put")), 3U);
    EXPECT_EQ(lines_of(device_table(rows, "message")), 2U);
    EXPECT_EQ(device_table(rows, "get"), "");
}

TEST(device_csv, has_a_line_for_every_method)
{
    const std::string text = device_csv({row_of("face", "put", 1, 0)});
    EXPECT_EQ(lines_of(text), 3U);
    EXPECT_NE(text.find("face,put,4096,64,key,window-put,1,0,0,0\n"), text.npos) << text;
    EXPECT_NE(text.find("face,put,4096,64,key,block-puts,1000,0,0,4096\n"), text.npos) << text;
}

TEST(device_goals, name_rows_with_commands)
{
    device_rows rows{row_of("face", "put", 1, 0), row_of("tile", "put", 1, 0)};
    rows[0].methods[0].commands = 1;
    const std::string text      = judge(rows);
    EXPECT_NE(text.find("key binding in the steady state >= 1: 1 of 2 rows\n"), text.npos) << text;
    EXPECT_NE(text.find("0.00  face put"), text.npos) << text;
}

} // namespace
} // namespace ucxl::bench
