// What the system tells of the memory of a process.
#include "support/must.h"
#include "sys/fd.h"
#include "sys/mapped_ranges.h"
#include "sys/mapping.h"
#include "sys/pages.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace
{

using namespace ucxl;
using ucxl::test::must;

address_range range_of(const owned_mapping& memory)
{
    const auto start = reinterpret_cast<std::uintptr_t>(memory.start());
    return {start, start + memory.length()};
}

TEST(mapped_ranges, tell_the_file_the_place_in_it_and_the_access)
{
    const owned_fd file(memfd_create("seen here", MFD_CLOEXEC));
    const std::uint64_t page = page_length();
    ASSERT_EQ(0, ftruncate(file.get(), static_cast<off_t>(4 * page)));
    const auto memory = must(owned_mapping::map(2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), page));
    ASSERT_EQ(0, mprotect(memory.start() + page, page, PROT_READ));
    struct stat status{};
    ASSERT_EQ(0, fstat(file.get(), &status));
    for (const pid_t pid : {0, getpid()}) {
        const auto ranges = mapped_ranges_of(pid, range_of(memory), false);
        ASSERT_EQ(ranges.size(), 2u);
        EXPECT_EQ(ranges[0].inode, status.st_ino);
        EXPECT_EQ(ranges[0].device, status.st_dev);
        EXPECT_EQ(ranges[0].file_offset, page);
        EXPECT_EQ(ranges[1].file_offset, 2 * page);
        EXPECT_STREQ(ranges[0].access.data(), "rw-s");
        EXPECT_STREQ(ranges[1].access.data(), "r--s");
        EXPECT_TRUE(ranges[0].is_shared());
        EXPECT_NE(ranges[0].name.find("seen here"), std::string::npos);
    }
}

TEST(mapped_ranges, tell_the_shared_one_that_has_all_bytes)
{
    const std::uint64_t page = page_length();
    const auto shared = must(owned_mapping::map(3 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const auto own    = must(owned_mapping::map(page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(0, mprotect(shared.start() + 2 * page, page, PROT_READ)); // a range of its own
    const auto found = shared_range_around(shared.start() + 1, 2 * page - 1);
    ASSERT_TRUE(found);
    const auto first = reinterpret_cast<std::uintptr_t>(shared.start());
    EXPECT_EQ(found->file_offset_of(first + 1), found->file_offset + (first + 1 - found->start));
    EXPECT_FALSE(shared_range_around(shared.start() + 1, 2 * page)) << "it goes on in the next range";
    EXPECT_FALSE(shared_range_around(own.start(), page)) << "private";
}

TEST(mapped_ranges, tell_flags_if_they_are_asked)
{
    const auto memory =
        must(owned_mapping::map(page_length(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(0, madvise(memory.start(), page_length(), MADV_DONTFORK));
    const auto ranges = mapped_ranges_of(0, range_of(memory), true);
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_TRUE(ranges[0].has_flag("dc"));
    EXPECT_FALSE(ranges[0].is_shared());
    EXPECT_TRUE(mapped_ranges_of(0, range_of(memory), false)[0].flags.empty());
}

TEST(mapped_ranges, are_none_of_a_process_that_does_not_exist)
{
    EXPECT_TRUE(mapped_ranges_of(0x3fffffff, {0, UINT64_MAX}, false).empty());
}

} // namespace
