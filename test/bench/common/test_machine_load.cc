// The load of others, from what the kernel says: also where it says nonsense, or nothing.
#include "machine_load.h"

#include <chrono>
#include <climits>
#include <string>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

constexpr const char* two_cpus = "cpu  30 0 30 600 30 3 3 3 7 0\n"
                                 "cpu0 10 1 10 200 10 1 1 1 2 0\n"
                                 "cpu1 20 2 20 400 20 2 2 2 5 0\n"
                                 "cpu10 1000 0 0 0 0 0 0 0 0 0\n"
                                 "intr 1 2 3\n";

TEST(cpu_times, are_those_of_the_cpus_that_are_asked_for)
{
    const load_sample one = parse_cpu_times(two_cpus, {1});
    EXPECT_TRUE(one.is_known);
    EXPECT_EQ(one.busy, 48) << "guests count once, waiting for a disk not at all";
    EXPECT_EQ(one.all, 468);
    EXPECT_EQ(parse_cpu_times(two_cpus, {0, 1}).busy, 72);
    EXPECT_EQ(parse_cpu_times(two_cpus, {1, 1}).busy, 48);
}

TEST(cpu_times, are_not_known_where_a_line_is_missing_or_damaged)
{
    EXPECT_FALSE(parse_cpu_times("", {0}).is_known);
    EXPECT_FALSE(parse_cpu_times(two_cpus, {}).is_known);
    EXPECT_FALSE(parse_cpu_times(two_cpus, {0, 2}).is_known);
    EXPECT_FALSE(parse_cpu_times("cpu0 1 2 3", {0}).is_known);
    EXPECT_FALSE(parse_cpu_times("cpu0 1 2 3 4 5 6 7 -8\n", {0}).is_known);
    EXPECT_FALSE(parse_cpu_times("cpu0 1 2 3 4 5 6 7 x\n", {0}).is_known);
    EXPECT_FALSE(parse_cpu_times("cpu0 99999999999999999999999 2 3 4 5 6 7 8\n", {0}).is_known);
    EXPECT_FALSE(parse_cpu_times("cpu0 0 0 0 0 0 0 0 0 0 0\n", {0}).is_known) << "a container that shows nothing";
    EXPECT_TRUE(parse_cpu_times("cpu0 1 2 3 4 5 6 7 8", {0}).is_known) << "no newline at its end";
}

std::string line_of(const std::string& name, const std::string& times = "100 20 3 4")
{
    return "42 (" + name + ") S 7 42 42 0 -1 4194560 1 2 3 4 " + times + " 20 0 1 0 12345 1 2";
}

TEST(process_times, are_found_behind_any_name)
{
    for (const char* name : {"bench", "", "a b", ") S 1 1 (", "((()))", "x) R 1 2 3 4 5 6 7 8 9 10 11 12 13", "\n\n"}) {
        const auto made = parse_process_times(line_of(name));
        ASSERT_TRUE(made) << name;
        EXPECT_EQ(made->process, 42) << name;
        EXPECT_EQ(made->parent, 7) << name;
        EXPECT_EQ(made->ticks, 127) << name;
    }
}

TEST(process_times, of_damaged_lines_are_refused)
{
    EXPECT_FALSE(parse_process_times(""));
    EXPECT_FALSE(parse_process_times("42 bench S 7"));
    EXPECT_FALSE(parse_process_times(")("));
    EXPECT_FALSE(parse_process_times("x (bench) S 7 42 42 0 -1 1 1 2 3 4 1 1 1 1"));
    EXPECT_FALSE(parse_process_times("42 (bench) S seven 42 42 0 -1 1 1 2 3 4 1 1 1 1"));
    EXPECT_FALSE(parse_process_times(line_of("bench", "100 20 3").substr(0, 50)));
    EXPECT_FALSE(parse_process_times(line_of("bench", "100 20 3 x")));
    const std::string whole = "42 (bench) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 4";
    for (std::size_t length = 0; length < whole.size() - 1; ++length) {
        EXPECT_FALSE(parse_process_times(whole.substr(0, length))) << length;
    }
}

TEST(process_times, of_a_tree_hold_nobody_else)
{
    const std::vector<process_times> all{{1, 0, 1000}, {10, 1, 1}, {11, 10, 2}, {12, 11, 4}, {20, 1, 500}, {21, 20, 9}};
    EXPECT_EQ(ticks_below(all, 10), 7);
    EXPECT_EQ(ticks_below(all, 12), 4);
    EXPECT_EQ(ticks_below(all, 99), 0);
    EXPECT_EQ(ticks_below({}, 1), 0);
}

TEST(process_times, of_parents_in_a_circle_count_once)
{
    EXPECT_EQ(ticks_below({{1, 2, 1}, {2, 3, 10}, {3, 1, 100}}, 2), 111);
    EXPECT_EQ(ticks_below({{5, 5, 3}}, 5), 3);
}

load_sample sample(unsigned long long busy, unsigned long long all, unsigned long long own)
{
    return {.busy = busy, .all = all, .own = own, .is_known = true};
}

TEST(part_of_others, is_what_the_own_processes_did_not_take)
{
    EXPECT_DOUBLE_EQ(part_of_others(sample(100, 1000, 50), sample(200, 1200, 100)).value_or(-1), 0.25);
    EXPECT_DOUBLE_EQ(part_of_others(sample(0, 0, 0), sample(100, 100, 100)).value_or(-1), 0);
    EXPECT_DOUBLE_EQ(part_of_others(sample(0, 0, 0), sample(100, 100, 0)).value_or(-1), 1);
}

TEST(part_of_others, stays_between_none_and_all)
{
    EXPECT_EQ(part_of_others(sample(0, 0, 0), sample(10, 100, 90)), 0) << "ticks are counted by different clocks";
    EXPECT_EQ(part_of_others(sample(0, 0, 90), sample(50, 100, 10)), 0.5) << "a process has ended";
    EXPECT_EQ(part_of_others(sample(0, 0, 0), sample(ULLONG_MAX, ULLONG_MAX, 0)), 1);
}

TEST(part_of_others, is_not_known_when_no_time_has_passed_or_time_went_back)
{
    EXPECT_FALSE(part_of_others(sample(1, 10, 1), sample(1, 10, 1)));
    EXPECT_FALSE(part_of_others(sample(5, 10, 1), sample(4, 20, 1)));
    EXPECT_FALSE(part_of_others(sample(5, 10, 1), sample(5, 9, 1)));
    load_sample unknown = sample(9, 20, 1);
    unknown.is_known    = false;
    EXPECT_FALSE(part_of_others(sample(5, 10, 1), unknown));
    EXPECT_FALSE(part_of_others(unknown, sample(50, 100, 1)));
}

TEST(load_samples, hold_the_own_time)
{
    const load_sample begin = sample_load({0});
    const auto end          = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    load_sample now         = begin;
    while (now.own < begin.own + 5 && std::chrono::steady_clock::now() < end) {
        now = sample_load({0});
    }
    EXPECT_GE(now.own, begin.own + 5) << "of this process, which has done nothing but this";
}

} // namespace
} // namespace ucxl::bench
