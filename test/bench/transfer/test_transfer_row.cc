#include "transfer_row.h"

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

const std::vector<std::string> peers{"peer type", "peer hand"};

measured method(const char* name, double time)
{
    return {.name = name, .time = time, .ratio = time, .rounds = {time, time, time}};
}

transfer_row row_of(double window, double mapped, double peer)
{
    transfer_row made{{.layout     = "layout",
                       .length     = 4096,
                       .num_blocks = 1,
                       .table      = "transfer",
                       .way        = "strided to strided",
                       .results    = {method(by_window, window), method(by_mapped, mapped), method(by_put, 1),
                                      method(by_get, 1), method("peer type", peer), method("peer hand", peer + 1),
                                      method("limit-queue", 2), method("limit-direct", 1), method("limit-pass", 0.5)},
                       .limits     = transfer_limits()},
                      family::other,
                      true};
    return made;
}

TEST(transfer_rows, below_a_peer_are_those_where_a_window_of_either_kind_is)
{
    EXPECT_FALSE(is_below(row_of(1, 1, 1), peers));
    EXPECT_FALSE(is_below(row_of(1, 1, 0.971), peers)) << "counts as equal";
    EXPECT_TRUE(is_below(row_of(1, 1, 0.969), peers));
    EXPECT_TRUE(is_below(row_of(1, 2, 1), peers));
    EXPECT_TRUE(is_below(row_of(2, 1, 1), peers));
    EXPECT_FALSE(is_below(row_of(2, 2, 1), {})) << "nobody is there to lose to";
}

TEST(transfer_rows, messages_are_limited_by_what_can_carry_them)
{
    const transfer_row row = row_of(4, 4, 4);
    EXPECT_EQ(row.of_the_limit(by_window), 0.5) << "a process cannot reach memory of the other's application";
    EXPECT_EQ(row.of_the_limit(by_mapped), 0.25) << "one pass is faster than a queue";
    EXPECT_EQ(row.of_the_limit(by_put), 0.5);
    EXPECT_EQ(row.of_the_limit(by_get), 0.5);
    EXPECT_FALSE(row.of_the_limit("peer type"));
}

std::vector<std::string> lines_of(const std::string& text)
{
    std::vector<std::string> made{""};
    for (const char letter : text) {
        if (letter == '\n') {
            made.emplace_back();
        } else {
            made.back() += letter;
        }
    }
    return made;
}

TEST(transfer_rows, summary_ends_with_the_limits_and_then_the_geomean)
{
    const std::vector<std::string> lines = lines_of(judge({row_of(2, 1, 2)}, peers, data_kind::live));
    ASSERT_GE(lines.size(), 3);
    EXPECT_EQ(lines[lines.size() - 1],
              "geomean 1.00 of 1 rows, live data, worst 1.00 (layout, 4 KB, transfer strided to strided)");
    EXPECT_EQ(lines[lines.size() - 2], "of the limit: 2 of 4 rows >= 0.95, worst 0.50 (put, layout, 4 KB, transfer "
                                       "strided to strided)");
    EXPECT_EQ(lines[lines.size() - 3], "fresh lists: -");
    EXPECT_TRUE(lines[lines.size() - 4].starts_with("one array: geomean 2.00 of 1 rows"));
}

TEST(transfer_rows, fresh_lists_are_judged_by_the_best_peer)
{
    transfer_row list = row_of(1, 1, 1);
    list.results.push_back(method("mapped, fresh list", 2));
    list.results.push_back(method("peer type, fresh list", 5));
    list.results.push_back(method("peer hand, fresh list", 4));
    list.results.push_back(method("ucp iov, fresh list", 3));
    EXPECT_EQ(judge_fresh({row_of(1, 1, 1), list}, peers), "fresh lists: 1.50\n");
    EXPECT_EQ(fresh_table({row_of(1, 1, 1)}, peers), "");
    EXPECT_NE(fresh_table({list}, peers).find("peer hand"), std::string::npos);
}

TEST(transfer_rows, summary_says_what_plain_messages_reach_of_a_bare_queue)
{
    transfer_row near = row_of(1, 1, 1), far = row_of(1, 1, 1), unmeasured = row_of(1, 1, 1);
    for (transfer_row* row : {&near, &far}) {
        row->results.push_back(method(by_contiguous, 4));
        row->results.push_back(method(by_posix, row == &near ? 2 : 8));
        row->results.push_back(method(by_contiguous_limit, 2));
    }
    EXPECT_NE(judge({near, far, unmeasured}, peers, data_kind::live)
                  .find("plain contiguous messages of stock UCX, by its choice or posix, of a bare queue >= 0.95: 1 of "
                        "2 rows\n"),
              std::string::npos);
}

TEST(transfer_rows, summary_of_no_rows_has_the_same_lines)
{
    const std::vector<std::string> lines = lines_of(judge({}, peers, data_kind::same));
    EXPECT_EQ(lines[lines.size() - 1], "no peers");
    EXPECT_EQ(lines[lines.size() - 2], "of the limit: 0 of 0 rows >= 0.95");
}

TEST(transfer_rows, summary_tells_near_cores_from_far_ones)
{
    transfer_row near = row_of(1, 1, 1), far = row_of(2, 1, 1);
    near.round_trip           = 60e-9;
    far.round_trip            = 370e-9;
    const std::string summary = judge({near, far}, peers, data_kind::same);
    EXPECT_NE(summary.find("near cores, below 16 KB, window: geomean 1.00 of 1 rows, worst"), std::string::npos)
        << summary;
    EXPECT_NE(summary.find("far cores, below 16 KB, window: geomean 0.50 of 1 rows, worst"), std::string::npos)
        << summary;
    EXPECT_NE(summary.find("of 2 rows, the same data, worst 0.50"), std::string::npos) << summary;
}

TEST(transfer_rows, lines_have_spread_limit_load_and_repeats)
{
    transfer_row row       = row_of(4, 4, 4);
    row.results[4].rounds  = {4, 2, 8};
    row.repeats            = 2;
    const std::string idle = transfer_line(row, peers);
    EXPECT_TRUE(idle.ends_with(" 0.50      0.25      -     2")) << idle;
    EXPECT_NE(idle.find("   1.00     0.50-2.00   "), std::string::npos) << idle;
    row.others_part = 0.04;
    EXPECT_TRUE(transfer_line(row, peers).ends_with("    4 %     2")) << transfer_line(row, peers);
    row.others_part = 0.5;
    EXPECT_TRUE(transfer_line(row, peers).ends_with("  50 %!     2")) << transfer_line(row, peers);
    EXPECT_EQ(lines_of(transfer_head(peers, data_kind::live)).back().size(), transfer_line(row, peers).size());
}

TEST(transfer_rows, repeats_are_counted)
{
    transfer_row twice = row_of(4, 4, 2), once = row_of(1, 1, 1);
    twice.repeats = 2;
    once.repeats  = 1;
    EXPECT_NE(repeats_text({twice, once, row_of(1, 1, 1)}, peers).find("2 of 3 rows, 3 times in all; 1 of them stayed"),
              std::string::npos);
}

TEST(transfer_rows, machine_is_idle_only_when_it_was_so_in_every_row)
{
    transfer_row quiet = row_of(1, 1, 1), busy = row_of(1, 1, 1);
    quiet.others_part = 0.01;
    busy.others_part  = 0.05;
    EXPECT_TRUE(load_text({quiet}, 0.01).starts_with("machine: idle"));
    EXPECT_TRUE(load_text({quiet}, 0.05).starts_with("machine: NOT IDLE"));
    EXPECT_TRUE(load_text({quiet, busy}, 0.01).starts_with("machine: NOT IDLE"));
    EXPECT_NE(load_text({quiet, busy}, 0.01).find("in 1 of 2 rows"), std::string::npos);
    EXPECT_NE(load_text({busy}, std::nullopt).find("does not tell"), std::string::npos);
}

} // namespace
} // namespace ucxl::bench
