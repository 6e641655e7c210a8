// Windows over memory of their own: zeroed, sealed at its length, shown in place where it is one block, gone with the
// window, in huge pages where it is dense, and nothing is left of one that could not be made.
#include "map_failure.h"
#include "support/alloc_failure.h"
#include "support/must.h"
#include "sys/pages.h"
#include "ucs/window/window_config.h"
#include "window_helpers.h"

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

std::size_t num_open_files()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

pack_plan_ptr plan_of(const layout_ptr& of)
{
    return must(pack_plan::compile(of));
}

layout_ptr column()
{
    const dim rows[] = {{100, 64}};
    return must(make_strided({.length = 16}, rows));
}

TEST(allocated_window, memory_is_zeroed_and_holds_the_bounds_of_every_source)
{
    const auto registry    = private_registry(64 * mib);
    const iov_part parts[] = {{.source = 0, .offset = -100, .item = {.length = 50}},
                              {.source = 2, .offset = 5000, .item = {.length = 8}},
                              {.source = 0, .offset = 70000, .item = {.nested = column()}}};
    const auto of          = must(make_iov(parts));
    window* const made     = must(registry->allocate(plan_of(of)));
    const auto& bases      = made->binding().bases;
    const auto& memory     = *made->binding().memory;
    ASSERT_EQ(bases.size(), 3u);
    for (const std::uint32_t source : {0u, 2u}) {
        const auto& bounds = of->bounds(source);
        for (auto at = bounds.true_lb; at < bounds.true_ub; ++at) {
            ASSERT_EQ(bases[source][at], std::byte{0});
            bases[source][at] = std::byte{1};
        }
        EXPECT_GE(memory.file_offset(bases[source] + bounds.true_lb), 0);
        EXPECT_LE(memory.file_offset(bases[source] + bounds.true_ub), static_cast<std::int64_t>(memory.length()));
        EXPECT_EQ(memory.file_offset(bases[source] + bounds.true_lb) % static_cast<std::int64_t>(page_length()), 0);
    }
    EXPECT_FALSE(made->is_identity());
    registry->destroy(made);
}

TEST(allocated_window, of_one_block_is_plain_memory_at_its_address)
{
    const auto registry = private_registry(64 * mib);
    window* const made  = must(registry->allocate(plan_of(must(make_contig(1, {.length = 10000})))));
    ASSERT_TRUE(made->is_identity());
    made->address()[9999] = std::byte{7};
    EXPECT_EQ(made->binding().bases[0][9999], std::byte{7});
    std::byte* const address = made->address();
    registry->destroy(made);
    EXPECT_FALSE(is_readable(address));
}

TEST(allocated_window, file_can_neither_shrink_nor_grow)
{
    const auto registry = private_registry(64 * mib);
    window* const made  = must(registry->allocate(plan_of(column())));
    const auto& memory  = *made->binding().memory;
    struct stat about{};
    ASSERT_EQ(0, fstat(memory.fd(), &about));
    EXPECT_EQ(static_cast<std::uint64_t>(about.st_size), memory.length());
    EXPECT_NE(0, ftruncate(memory.fd(), 0));
    EXPECT_NE(0, ftruncate(memory.fd(), about.st_size + 4096));
    registry->destroy(made);
}

TEST(allocated_window, memory_goes_with_the_window)
{
    const auto registry = private_registry(64 * mib);
    const auto before   = num_open_files();
    window* const made  = must(registry->allocate(plan_of(column())));
    std::byte* const at = made->binding().bases[0];
    EXPECT_EQ(num_open_files(), before + 1);
    EXPECT_TRUE(is_readable(at));
    registry->destroy(made);
    EXPECT_EQ(num_open_files(), before);
    EXPECT_FALSE(is_readable(at));
}

// For every number: the Nth allocation fails, and then the Nth mapping.
TEST(allocated_window, failures_leave_nothing_behind)
{
    const auto registry = private_registry(64 * mib);
    const auto before   = num_open_files();
    const auto plan     = plan_of(must(make_contig(1, {.length = 10000})));
    const auto try_once = [&] {
        try {
            const auto made = registry->allocate(plan);
            if (made) {
                registry->destroy(*made);
            }
            return made || made.error().code == errc::no_memory;
        } catch (const std::bad_alloc&) {
            return true;
        }
    };
    EXPECT_GT(fail_every_allocation(try_once), 3);
    // Of the memory, and at the window's address. Long memory is mapped in two steps.
    const auto long_plan = plan_of(must(make_contig(1, {.length = 4 * mib})));
    const std::pair<pack_plan_ptr, int> mapped[]{{plan, 2}, {long_plan, huge_page_length() == 0 ? 2 : 3}};
    for (const auto& [each, steps] : mapped) {
        for (int number = 0; number < steps; ++number) {
            fail_map_after(number);
            const auto made = registry->allocate(each);
            fail_map_after(-1);
            ASSERT_FALSE(made.has_value()) << number;
            EXPECT_EQ(made.error().code, errc::no_memory);
        }
    }
    EXPECT_EQ(registry->num_live(), 0u);
    EXPECT_EQ(num_open_files(), before);
    EXPECT_TRUE(try_once());
}

// A row of `count` blocks of 8 bytes.
layout_ptr row_of_numbers(std::uint64_t count, std::int64_t stride)
{
    const dim numbers[] = {{count, stride}};
    return must(make_strided({.length = 8}, numbers));
}

struct huge_memory : testing::Test {
    void TearDown() override { fail_advice(false); }

    // Bytes of pages that exist.
    static std::uint64_t num_allocated(const layout_memory& memory)
    {
        struct stat about{};
        EXPECT_EQ(0, fstat(memory.fd(), &about));
        return static_cast<std::uint64_t>(about.st_blocks) * 512;
    }

    // Whether this machine has huge pages for files in memory.
    static bool are_possible()
    {
        return layout_memory::allocate(*row_of_numbers(huge_page_length() / 64 + 1, 64), huge_pages_option::always)
            .has_value();
    }

    static constexpr auto possible = huge_pages_option::possible, never = huge_pages_option::never,
                          always = huge_pages_option::always;
};

TEST_F(huge_memory, is_allocated_at_once_for_blocks_that_are_dense)
{
    const std::uint64_t huge = std::max<std::uint64_t>(huge_page_length(), page_length());
    const auto dense         = row_of_numbers(3 * huge / 1024, 1024);
    const auto memory        = must(layout_memory::allocate(*dense, possible));
    EXPECT_EQ(num_allocated(*memory), are_possible() ? 3 * huge : 0);
    EXPECT_EQ(std::ranges::count(std::span(memory->bases()[0], 3 * huge - 1024), std::byte{0}), 3 * huge - 1024);
    EXPECT_EQ(num_allocated(*must(layout_memory::allocate(*dense, never))), 0u) << "UCX_LAYOUT_HUGE_PAGES=n";
}

TEST_F(huge_memory, is_left_out_where_most_pages_may_stay_untouched)
{
    const auto sparse = row_of_numbers(huge_page_length() / 8192 + 1, 17 * 8192);
    EXPECT_EQ(num_allocated(*must(layout_memory::allocate(*sparse, possible))), 0u);
    const auto forced = layout_memory::allocate(*sparse, always);
    EXPECT_EQ(forced.has_value(), are_possible());
    EXPECT_TRUE(!forced || num_allocated(**forced) > 0);
}

TEST_F(huge_memory, is_not_longer_than_bounds_by_more_than_a_third)
{
    const std::uint64_t huge = std::max<std::uint64_t>(huge_page_length(), 64 * page_length());
    const auto length_of     = [](std::uint64_t length) {
        return must(layout_memory::allocate(*must(make_contig(1, {.length = length})), possible))->length();
    };
    EXPECT_EQ(length_of(100), page_length());
    EXPECT_EQ(length_of(huge / 2), huge / 2);
    EXPECT_EQ(length_of(huge / 4 * 3), huge_page_length() == 0 ? huge / 4 * 3 : huge);
    EXPECT_EQ(length_of(huge + 1), huge + page_length());
}

TEST_F(huge_memory, falls_back_to_small_pages_unless_they_are_forbidden)
{
    const auto dense  = row_of_numbers(1 << 16, 64);
    const auto before = num_open_files();
    fail_advice(true);
    const auto memory = must(layout_memory::allocate(*dense, possible));
    EXPECT_EQ(num_allocated(*memory), 0u);
    memory->bases()[0][0] = std::byte{1};
    const auto forced     = layout_memory::allocate(*dense, always);
    ASSERT_FALSE(forced.has_value());
    EXPECT_EQ(forced.error().code, errc::no_memory);
    EXPECT_TRUE(forced.error().message.starts_with("huge pages for ")) << forced.error().message;
    EXPECT_EQ(num_open_files(), before + 1);
}

TEST_F(huge_memory, option_has_three_values)
{
    EXPECT_EQ(read_window_config()->huge_pages, static_cast<int>(possible));
    const std::pair<const char*, huge_pages_option> values[]{{"try", possible}, {"n", never}, {"y", always}};
    for (const auto& [value, meaning] : values) {
        setenv("UCX_LAYOUT_HUGE_PAGES", value, 1);
        EXPECT_EQ(read_window_config()->huge_pages, static_cast<int>(meaning)) << value;
    }
    setenv("UCX_LAYOUT_HUGE_PAGES", "2m", 1);
    const auto refused = read_window_config();
    unsetenv("UCX_LAYOUT_HUGE_PAGES");
    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(refused.error().message.starts_with("UCX_LAYOUT_HUGE_PAGES is '2m'")) << refused.error().message;
}

} // namespace
