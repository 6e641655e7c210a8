// Windows over memory of their own: zeroed, sealed at its length, shown in place where it is one block, gone with the
// window, and nothing is left of one that could not be made.
#include "map_failure.h"
#include "support/alloc_failure.h"
#include "support/must.h"
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
    for (int number = 0; number < 2; ++number) { // of the memory, and at the window's address
        fail_map_after(number);
        const auto made = registry->allocate(plan);
        fail_map_after(-1);
        ASSERT_FALSE(made.has_value());
        EXPECT_EQ(made.error().code, errc::no_memory);
    }
    EXPECT_EQ(registry->num_live(), 0u);
    EXPECT_EQ(num_open_files(), before);
    EXPECT_TRUE(try_once());
}

} // namespace
