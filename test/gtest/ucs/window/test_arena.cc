#include "abi/memory_types.h"
#include "map_failure.h"
#include "support/forked_process.h"
#include "support/log_guard.h"
#include "support/must.h"
#include "ucs/window/window_config.h"
#include "window_helpers.h"

#include <sys/resource.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

class arena_test : public ucx_test
{
protected:
    void TearDown() override { unsetenv("UCX_LAYOUT_ARENA_SIZE"); }
};

bool is_rdma(const void* address, std::size_t length)
{
    const auto* const first = static_cast<const std::byte*>(address);
    return ucxl::abi::is_known_as(UCS_MEMORY_TYPE_RDMA, first) &&
           ucxl::abi::is_known_as(UCS_MEMORY_TYPE_RDMA, first + length - 1);
}

TEST_F(arena_test, is_rdma_memory_from_its_first_to_its_last_byte)
{
    auto made             = must(arena::reserve(64 * mib));
    const std::byte* base = made->base();
    EXPECT_TRUE(is_rdma(base, 1));
    EXPECT_TRUE(is_rdma(base, 64 * mib));
    EXPECT_TRUE(is_rdma(base + 64 * mib - 1, 1));
    EXPECT_TRUE(is_rdma(base - arena::margin, 1)) << "addresses just outside of a window are no host memory";
    EXPECT_TRUE(is_rdma(base + 64 * mib + arena::margin - 1, 1));
    EXPECT_FALSE(is_rdma(base - arena::margin - 16, 1));
    EXPECT_FALSE(is_rdma(base + 64 * mib + arena::margin, 1));
    made.reset();
    EXPECT_FALSE(is_rdma(base, 1));
    EXPECT_FALSE(is_rdma(base - arena::margin, 1));
}

TEST_F(arena_test, clearing_and_mapping_keeps_the_memory_type)
{
    const auto made = must(arena::reserve(64 * mib));
    ASSERT_TRUE(made->clear(0, 64 * mib).has_value());
    ASSERT_TRUE(made->clear(4096, 4096).has_value());
    ASSERT_TRUE(made->clear(0, 0).has_value());
    EXPECT_TRUE(is_rdma(made->base(), 64 * mib));
}

TEST_F(arena_test, less_than_one_slot_is_refused)
{
    EXPECT_EQ(arena::reserve(64 * mib - 1).error().code, errc::invalid_param);
    EXPECT_EQ(arena::reserve(0).error().code, errc::invalid_param);
    EXPECT_EQ(must(arena::reserve(65 * mib))->length(), 64 * mib);
}

TEST_F(arena_test, length_is_halved_until_it_fits)
{
    fail_map_after(0);
    EXPECT_EQ(must(arena::reserve(8192 * mib))->length(), 4096 * mib);
    fail_map_after(-1);
}

TEST_F(arena_test, failure_names_the_option)
{
    fail_map_after(0);
    const auto none = arena::reserve(1024 * mib); // may not be halved
    fail_map_after(-1);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, errc::no_memory);
    EXPECT_NE(none.error().message.find("UCX_LAYOUT_ARENA_SIZE"), std::string::npos) << none.error().message;
}

TEST_F(arena_test, address_space_limit_gives_a_smaller_one)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's shadow memory does not fit under a limit on the address space";
#endif
    EXPECT_TRUE(holds_in_child([] {
        const rlimit limit{16ul << 30, 16ul << 30};
        if (setrlimit(RLIMIT_AS, &limit) != 0) {
            return false;
        }
        const auto made = arena::reserve(1ul << 40);
        return made.has_value() && (*made)->length() == 8192 * mib;
    }));
}

TEST_F(arena_test, size_is_read_from_the_environment)
{
    EXPECT_EQ(read_window_config()->arena_length, 1ul << 40);
    setenv("UCX_LAYOUT_ARENA_SIZE", "256m", 1);
    EXPECT_EQ(read_window_config()->arena_length, 256 * mib);
}

TEST_F(arena_test, bad_size_is_refused_by_name)
{
    setenv("UCX_LAYOUT_ARENA_SIZE", "many", 1);
    const auto refused = read_window_config();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, errc::invalid_param);
    EXPECT_TRUE(refused.error().message.starts_with("UCX_LAYOUT_ARENA_SIZE is 'many', expected: memory units"))
        << refused.error().message;
}

TEST_F(arena_test, the_option_that_is_wrong_is_named_and_no_other)
{
    setenv("UCX_LAYOUT_ARENA_SIZE", "256m", 1);
    setenv("UCX_LAYOUT_STREAM_MIN", "-", 1);
    const auto refused = read_window_config();
    unsetenv("UCX_LAYOUT_STREAM_MIN");
    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(refused.error().message.starts_with("UCX_LAYOUT_STREAM_MIN is '-'")) << refused.error().message;
}

} // namespace
