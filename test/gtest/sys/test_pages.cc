// Huge pages of files in memory. Whether a machine has them is up to its kernel: the tests compare what
// fill_with_huge_pages() says with what the kernel shows.
#include "is_mapped.h"
#include "support/must.h"
#include "sys/mapping.h"
#include "sys/memory_file.h"
#include "sys/pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <format>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace
{

using namespace ucxl;
using ucxl::test::is_mapped;
using ucxl::test::must;

const std::uint64_t huge = std::max<std::uint64_t>(huge_page_length(), page_length());

owned_fd file_of(std::uint64_t length)
{
    return must(make_memory_file("ucx_layout_test", length, F_SEAL_SHRINK));
}

owned_mapping map(const owned_fd& file, std::uint64_t length, std::uint64_t offset = 0)
{
    return must(owned_mapping::map_file(length, PROT_READ | PROT_WRITE, file.get(), offset));
}

// Bytes of the mapping that are in huge pages (proc_pid_smaps(5), which has a part for each advice).
std::uint64_t num_huge_bytes(const owned_mapping& mapping)
{
    std::ifstream maps("/proc/self/smaps");
    const auto start    = reinterpret_cast<std::uintptr_t>(mapping.start());
    bool is_of_mapping  = false;
    std::uint64_t bytes = 0;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t low = 0, high = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2) {
            is_of_mapping = low >= start && high <= start + mapping.length();
        } else if (is_of_mapping && line.starts_with("ShmemPmdMapped:")) {
            bytes += std::stoull(line.substr(line.find(':') + 1)) * 1024;
        }
    }
    return bytes;
}

// MADV_COLLAPSE came with Linux 6.1.
bool kernel_has_them()
{
    utsname about{};
    int major = 0, minor = 0;
    EXPECT_EQ(uname(&about), 0);
    EXPECT_EQ(std::sscanf(about.release, "%d.%d", &major, &minor), 2) << about.release;
    std::string setting;
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/shmem_enabled"), setting);
    return std::pair(major, minor) >= std::pair(6, 1) && !setting.empty() && !setting.contains("[deny]");
}

TEST(huge_pages, can_be_mapped_where_a_file_is_mapped)
{
    const owned_fd file = file_of(5 * huge);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{page_length()}, huge, huge + page_length()}) {
        const owned_mapping mapped = map(file, 3 * huge + 1, offset);
        EXPECT_EQ((reinterpret_cast<std::uintptr_t>(mapped.start()) - offset) % huge, 0u) << "offset " << offset;
        EXPECT_EQ(mapped.length(), 3 * huge + 1);
    }
}

TEST(huge_pages, a_mapping_has_the_bytes_of_its_file_and_nothing_beside_it)
{
    const owned_fd file = file_of(4 * huge);
    const std::array number{std::byte{7}};
    ASSERT_TRUE(write_all(file, huge + page_length(), number));
    const std::byte* start = nullptr;
    {
        const owned_mapping mapped = map(file, 2 * huge + page_length(), huge + page_length());
        start                      = mapped.start();
        EXPECT_EQ(*start, std::byte{7});
        EXPECT_TRUE(is_mapped(start + 2 * huge));
        std::uint64_t rest = 0; // of the addresses that were reserved
        for (std::uint64_t page = page_length(); page < huge; page += page_length()) {
            rest += is_mapped(start - page) + is_mapped(start + 2 * huge + page);
        }
        EXPECT_LT(rest, huge / page_length()) << "a huge page beside the mapping is still reserved";
    }
    EXPECT_FALSE(is_mapped(start));
    EXPECT_FALSE(is_mapped(start + 2 * huge));
}

TEST(huge_pages, no_file_is_no_mapping)
{
    const auto mapped = owned_mapping::map_file(2 * huge, PROT_READ, -1, 0);
    ASSERT_FALSE(mapped.has_value());
    EXPECT_EQ(mapped.error().code, errc::no_memory);
}

TEST(huge_pages, exist_where_the_kernel_has_them)
{
    const owned_fd file        = file_of(2 * huge);
    const owned_mapping mapped = map(file, 2 * huge);
    EXPECT_EQ(fill_with_huge_pages(mapped.start(), mapped.length()).has_value(), kernel_has_them());
}

TEST(huge_pages, keep_what_is_written_and_show_it_to_other_mappings)
{
    const owned_fd file   = file_of(3 * huge);
    const owned_mapping a = map(file, 3 * huge), b = map(file, 2 * huge, huge);
    a.start()[page_length() + 1] = std::byte{3};
    const auto filled            = fill_with_huge_pages(a.start(), a.length());
    EXPECT_EQ(num_huge_bytes(a) == 3 * huge, filled.has_value());
    EXPECT_EQ(a.start()[page_length() + 1], std::byte{3});
    EXPECT_EQ(std::ranges::count(std::span(a.start(), a.length()), std::byte{0}), 3 * huge - 1);
    for (std::uint64_t at = 0; at < b.length(); at += page_length()) {
        b.start()[at] = static_cast<std::byte>(at / page_length());
        ASSERT_EQ(a.start()[huge + at], static_cast<std::byte>(at / page_length()));
    }
    EXPECT_EQ(num_huge_bytes(b) == 2 * huge, filled.has_value());
}

TEST(huge_pages, only_whole_ones_are_filled)
{
    const owned_fd file        = file_of(4 * huge);
    const owned_mapping mapped = map(file, 4 * huge);
    const auto filled          = fill_with_huge_pages(mapped.start() + 1, 3 * huge + page_length());
    const auto too_short       = fill_with_huge_pages(mapped.start() + 3 * huge, huge - 1);
    EXPECT_EQ(num_huge_bytes(mapped), filled ? 2 * huge : 0);
    EXPECT_EQ(too_short.has_value(), huge_page_length() != 0);
}

TEST(huge_pages, private_memory_that_may_not_be_read_has_none)
{
    const auto mapped = must(owned_mapping::map(3 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto filled = fill_with_huge_pages(mapped.start(), mapped.length());
    ASSERT_FALSE(filled.has_value());
    EXPECT_EQ(filled.error().code, errc::no_memory);
    EXPECT_TRUE(filled.error().message.starts_with(std::format("huge pages for {} bytes: ", 3 * huge)))
        << filled.error().message;
}

} // namespace
