// The statistics of the benchmarks, with what a broken clock, a slow contender or a repeated row gives them.
#include "measure.h"
#include "row.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "scratch_folder.h"

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

constexpr double infinite = std::numeric_limits<double>::infinity();

measured method(const std::string& name, std::vector<double> rounds)
{
    return {.name = name, .rounds = std::move(rounds)};
}

TEST(quartiles, of_one_value_are_that_value)
{
    const quartiles made = quartiles_of({3});
    EXPECT_EQ(made.low, 3);
    EXPECT_EQ(made.middle, 3);
    EXPECT_EQ(made.high, 3);
}

TEST(quartiles, are_values_of_any_order)
{
    const quartiles made = quartiles_of({5, 1, 4, 2, 3});
    EXPECT_EQ(made.low, 2);
    EXPECT_EQ(made.middle, 3);
    EXPECT_EQ(made.high, 4);
    EXPECT_EQ(quartiles_of({2, 1}).low, 1);
    EXPECT_EQ(quartiles_of({2, 1}).middle, 2);
    EXPECT_EQ(quartiles_of({4, 3, 2, 1}).low, 1);
    EXPECT_EQ(quartiles_of({4, 3, 2, 1}).high, 4);
}

TEST(quartiles, stay_in_order_for_any_number_of_values)
{
    std::mt19937 random(7); // any numbers will do
    for (std::size_t num = 1; num < 100; ++num) {
        std::vector<double> values(num);
        for (double& value : values) {
            value = static_cast<double>(random() % 50) - 25;
        }
        const quartiles made = quartiles_of(values);
        EXPECT_LE(made.low, made.middle) << num;
        EXPECT_LE(made.middle, made.high) << num;
        const auto at_most = [&](double limit) {
            return std::ranges::count_if(values, [&](double value) { return value <= limit; });
        };
        EXPECT_GE(4 * at_most(made.low), static_cast<std::ptrdiff_t>(num)) << num;
        EXPECT_GE(2 * at_most(made.middle), static_cast<std::ptrdiff_t>(num)) << num;
        EXPECT_GE(4 * at_most(made.high), static_cast<std::ptrdiff_t>(3 * num)) << num;
    }
}

TEST(quartiles, of_nothing_finite_are_refused)
{
    EXPECT_THROW(quartiles_of({}), std::invalid_argument);
    EXPECT_THROW(quartiles_of({not_measured, infinite, -infinite}), std::invalid_argument);
    EXPECT_THROW(median({}), std::invalid_argument);
}

TEST(quartiles, leave_out_what_is_not_finite)
{
    EXPECT_EQ(median({not_measured, 1, infinite, 2, not_measured, 3, -infinite}), 2);
}

TEST(ratios, are_of_the_rounds_that_both_have_had)
{
    EXPECT_EQ(ratio_between(method("a", {2, not_measured, 9}), method("b", {1, 1, 3, 1})), 3);
    EXPECT_EQ(ratio_between(method("a", {2}), method("b", {1, 100, 100})), 2);
}

TEST(ratios, leave_out_rounds_that_took_no_time)
{
    const quartiles made = ratios_between(method("a", {0, 1, 8, -1}), method("b", {0, 0, 2, 1}));
    EXPECT_EQ(made.low, 4);
    EXPECT_EQ(made.high, 4);
    EXPECT_THROW(ratio_between(method("a", {0, 1}), method("b", {1, 0})), std::invalid_argument);
    EXPECT_THROW(ratio_between(method("a", {}), method("b", {1})), std::invalid_argument);
    EXPECT_THROW(ratio_between(method("a", {not_measured, 1}), method("b", {1, not_measured})), std::invalid_argument);
}

TEST(repeats, keep_rounds_of_one_moment_beside_each_other)
{
    std::vector<measured> results{method("ours", {1, 1, 1}), method("slow", {5})};
    append_rounds(results, {method("ours", {10, 10}), method("slow", {50})});
    ASSERT_EQ(results[0].rounds.size(), 5);
    EXPECT_EQ(results[0].time, 1);
    EXPECT_EQ(results[1].ratio, 5) << "a round of the second time was compared with one of the first time";
    append_rounds(results, {method("ours", {2}), method("slow", {10})});
    EXPECT_EQ(results[1].ratio, 5);
    EXPECT_EQ(results[1].time, 10);
}

TEST(repeats, of_other_contenders_are_refused)
{
    std::vector<measured> results{method("ours", {1}), method("peer", {1})};
    EXPECT_THROW(append_rounds(results, {method("ours", {1})}), std::invalid_argument);
    EXPECT_THROW(append_rounds(results, {method("peer", {1}), method("ours", {1})}), std::invalid_argument);
    EXPECT_EQ(results[0].rounds.size(), 1);
}

TEST(repeats, contenders_are_asked_as_often_as_their_rounds_say)
{
    const auto steady = [](double time) { return [=](unsigned times) { return time * times; }; };
    const std::vector<contender> contenders{{"ours", steady(1e-6)}, {"slow", steady(1)}};
    std::vector<measured> results = alternate({.rounds = 5, .sample_time = 1e-3, .most_time = 0.1}, contenders);
    append_rounds(results, alternate({.rounds = 5, .sample_time = 1e-3, .most_time = 0.1}, contenders));
    EXPECT_EQ(results[0].rounds.size(), 10);
    EXPECT_NEAR(results[1].ratio, 1e6, 1);
}

// ours 2, another 3, limits 1 and 1.9
row small_row()
{
    return {.layout     = "with \"quotes, commas\"",
            .length     = 4096,
            .num_blocks = 2,
            .table      = "transfer",
            .way        = "strided to strided",
            .results    = {{"ours", 2, 1, {2, 2}},
                           {"other", 3, 1.5, {3, 3}},
                           {"floor", 1, 0.5, {1, 1}},
                           {"streaming floor", 1.9, 0.95, {1.9, 1.9}}},
            .limits     = {{"other", {"floor", "streaming floor"}}, {"ours", {"streaming floor"}}}};
}

TEST(calls, are_measured_in_their_order)
{
    unsigned first = 0, second = 0;
    const auto made = alternate_calls({.rounds = 3, .sample_time = 1e-5, .most_time = no_limit},
                                      {[&] { ++first; },
                                       [&] {
                                           ++second;
                                           std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                       }});
    ASSERT_EQ(made.size(), 2U);
    EXPECT_EQ(made[1].rounds.size(), 3U);
    EXPECT_GE(made[1].time, 1e-3);
    EXPECT_LT(made[0].time, made[1].time);
    EXPECT_GT(first, second);
}

TEST(limits, are_the_fastest_of_those_that_were_measured)
{
    row one = small_row();
    EXPECT_DOUBLE_EQ(one.of_the_limit("ours").value_or(0), 0.95);
    EXPECT_DOUBLE_EQ(one.of_the_limit("other").value_or(0), 1.0 / 3);
    EXPECT_FALSE(one.of_the_limit("floor")) << "it has none";
    EXPECT_FALSE(one.of_the_limit("nobody"));
    one.limits = {{"ours", {}}, {"other", {"nobody"}}, {"nobody", {"floor"}}};
    EXPECT_FALSE(one.of_the_limit("ours"));
    EXPECT_FALSE(one.of_the_limit("other"));
    EXPECT_FALSE(one.of_the_limit("nobody"));
}

TEST(limits, summary_counts_every_method_that_has_one)
{
    EXPECT_EQ(of_the_limit({}), "of the limit: 0 of 0 rows >= 0.95");
    row without = small_row();
    without.limits.clear();
    EXPECT_EQ(of_the_limit({without}), "of the limit: 0 of 0 rows >= 0.95");
    EXPECT_EQ(of_the_limit({without, small_row()}),
              "of the limit: 1 of 2 rows >= 0.95, worst 0.33 (other, with \"quotes, commas\", 4 KB, transfer strided "
              "to strided)");
}

TEST(spread, is_that_of_the_peer_that_the_ratio_is_of)
{
    row one               = small_row();
    one.results[0].rounds = {1, 1, 1, 1};
    one.results[1].rounds = {1, 2, 3, 4};
    one.results[2].rounds = {9, 9, 9, 9};
    const std::vector<std::string> peers{"floor", "other", "nobody"};
    const auto spread = one.spread_against(peers, "ours");
    ASSERT_TRUE(spread);
    EXPECT_EQ(spread->middle, one.against(peers, "ours"));
    EXPECT_EQ(spread->low, 1);
    EXPECT_EQ(spread->high, 4);
    EXPECT_FALSE(one.spread_against(std::vector<std::string>{}, "ours"));
    EXPECT_FALSE(one.spread_against(peers, "nobody"));
}

TEST(spread, as_text_has_both_ends)
{
    EXPECT_EQ(spread_text(quartiles{0.961, 1, 123.4}, 10), "  0.96-123");
    EXPECT_EQ(spread_text(std::nullopt, 4), "   -");
}

std::string text_of(const std::string& file)
{
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

TEST(files, have_spread_limits_repeats_and_load)
{
    const scratch_folder folder;
    row one         = small_row();
    one.layout      = "layout";
    one.repeats     = 2;
    one.others_part = 0.25;
    write_csv({one}, folder.path() + "/rows.csv");
    const std::string csv = text_of(folder.path() + "/rows.csv");
    EXPECT_NE(csv.find("time_by_ours,seconds_low,seconds_high,time_by_ours_low,time_by_ours_high,of_the_limit,repeats,"
                       "others_part\n"),
              std::string::npos)
        << csv;
    EXPECT_NE(csv.find(",\"other\",3,1.365e-06,1.5,3,3,1.5,1.5,0.3333,2,0.25\n"), std::string::npos) << csv;
    EXPECT_NE(csv.find(",\"floor\",1,4.096e-06,0.5,1,1,0.5,0.5,,2,0.25\n"), std::string::npos) << csv;

    write_json({one}, folder.path() + "/rows.json");
    const auto json = nlohmann::json::parse(text_of(folder.path() + "/rows.json"));
    EXPECT_EQ(json[0]["repeats"], 2);
    EXPECT_EQ(json[0]["others_part"], 0.25);
    EXPECT_EQ(json[0]["methods"]["ours"]["of_the_limit"], 0.95);
    EXPECT_EQ(json[0]["methods"]["other"]["time_by_ours_quartiles"], nlohmann::json({1.5, 1.5}));
    EXPECT_FALSE(json[0]["methods"]["floor"].contains("of_the_limit"));
}

} // namespace
} // namespace ucxl::bench
