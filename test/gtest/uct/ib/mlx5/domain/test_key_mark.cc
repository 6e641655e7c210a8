// The mark of a window's packed key: keys of UCX never look like one, and the key comes back as UCX packs it.
#include "uct/ib/mlx5/domain/key_mark.h"

#include "support/random.h"

#include <gtest/gtest.h>

namespace
{

using namespace ucxl::mlx5;

TEST(key_mark, names_the_host_and_leaves_the_key)
{
    ucxl::test::random random(ucxl::test::run_seed());
    for (int round = 0; round < 10000; ++round) {
        const auto key    = static_cast<std::uint32_t>(random.next());
        const auto host   = static_cast<std::uint32_t>(random.below(std::uint64_t{max_host} + 1));
        const auto packed = marked_key(key, host);
        EXPECT_EQ(host_of(packed), host);
        EXPECT_EQ(unmarked_key(packed), std::uint64_t{0xffffffff} << 32 | key);
    }
}

TEST(key_mark, of_the_first_and_the_last_host_differ_from_no_key)
{
    EXPECT_EQ(host_of(marked_key(1, 0)), 0u);
    EXPECT_EQ(host_of(marked_key(1, max_host)), max_host);
    EXPECT_NE(marked_key(1, max_host) >> 32, no_key);
    EXPECT_LE(this_host(), max_host);
    EXPECT_EQ(this_host(), this_host());
}

// A key of UCX has no atomic key, or one whose index is below that of marks.
TEST(key_mark, is_not_seen_in_keys_of_ucx)
{
    EXPECT_FALSE(host_of(std::uint64_t{no_key} << 32 | 0x1234));
    EXPECT_FALSE(host_of(0xffffffffffffffff));
    EXPECT_FALSE(host_of(0x1234));
    EXPECT_FALSE(host_of(std::uint64_t{0xfeffffff} << 32 | 0xff123456));
}

} // namespace
