#include "cpus.h"

#include <thread>

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

TEST(cpus, two_cores_of_one_package_are_chosen_before_anything_else)
{
    // 0 and 1 share a core, 8 is in another package
    const std::vector<cpu_place> usable{{0, 0, 0}, {1, 0, 0}, {8, 0, 1}, {2, 1, 0}};
    const auto chosen = choose_two(usable);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->first, 0);
    EXPECT_EQ(chosen->second, 2);
    EXPECT_FALSE(chosen->share_core);
}

TEST(cpus, another_package_is_chosen_before_the_same_core)
{
    const auto chosen = choose_two({{0, 0, 0}, {1, 0, 0}, {8, 0, 1}});
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->first, 0);
    EXPECT_EQ(chosen->second, 8);
    EXPECT_FALSE(chosen->share_core);
}

TEST(cpus, one_core_is_said_to_be_one)
{
    const auto chosen = choose_two({{4, 2, 0}, {5, 2, 0}});
    ASSERT_TRUE(chosen);
    EXPECT_TRUE(chosen->share_core);
    EXPECT_NE(pin_text(chosen).find("ONE CORE"), std::string::npos);
}

TEST(cpus, less_than_two_are_no_pair)
{
    EXPECT_FALSE(choose_two({}));
    EXPECT_FALSE(choose_two({{3, 1, 0}}));
    EXPECT_NE(pin_text(std::nullopt).find("NOT PINNED"), std::string::npos);
}

// Of a thread, so that the rest of the program stays where it is.
template <typename Fn>
void in_a_thread(Fn&& fn)
{
    std::thread(fn).join();
}

TEST(cpus, each_process_takes_its_own_of_two)
{
    const auto pair = choose_two(usable_cpus());
    if (!pair) {
        GTEST_SKIP() << "one CPU only";
    }
    for (const bool is_first : {true, false}) {
        in_a_thread([&] {
            keep_to(*pair);
            EXPECT_EQ(allowed_cpus(), (std::vector<int>{pair->first, pair->second}));
            EXPECT_EQ(pinned_to(), -1);
            take_one(is_first);
            EXPECT_EQ(pinned_to(), is_first ? pair->first : pair->second);
            take_one(!is_first);
            EXPECT_EQ(pinned_to(), is_first ? pair->first : pair->second) << "it has taken one before";
        });
    }
}

TEST(cpus, that_do_not_exist_are_refused)
{
    in_a_thread([] {
        const std::vector<int> before = allowed_cpus();
        EXPECT_THROW(keep_to({.first = 16000, .second = 16001, .share_core = false}), std::exception);
        EXPECT_EQ(allowed_cpus(), before);
    });
}

} // namespace
} // namespace ucxl::bench
