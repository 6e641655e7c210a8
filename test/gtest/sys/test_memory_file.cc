#include "sys/memory_file.h"

#include <gtest/gtest.h>

#include <array>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace
{

using namespace ucxl;

TEST(memory_file, is_zeroed_and_keeps_its_length)
{
    auto file = make_memory_file("ucx_layout_test", 64, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    std::array<std::byte, 64> bytes;
    bytes.fill(std::byte{1});
    ASSERT_TRUE(read_all(*file, 0, bytes));
    EXPECT_EQ(bytes, (std::array<std::byte, 64>{}));
    EXPECT_NE(ftruncate(file->get(), 32), 0);
    EXPECT_NE(ftruncate(file->get(), 128), 0);
}

// Its pages can be punched out, and the next touch of one may find none.
TEST(memory_file, of_a_hugetlbfs_does_not_keep_its_memory_by_a_seal)
{
    const owned_fd plain(memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const owned_fd huge(memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
    if (!huge) {
        GTEST_SKIP() << "the kernel has no hugetlbfs";
    }
    EXPECT_FALSE(keeps_its_memory(plain));
    for (const owned_fd* const file : {&plain, &huge}) {
        ASSERT_EQ(fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    }
    EXPECT_TRUE(keeps_its_memory(plain));
    EXPECT_FALSE(keeps_its_memory(huge));
}

TEST(memory_file, gives_back_what_was_written_and_nothing_behind_its_end)
{
    auto file = make_memory_file("ucx_layout_test", 16, F_SEAL_SHRINK);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const std::array written{std::byte{3}, std::byte{4}};
    ASSERT_TRUE(write_all(*file, 14, written));
    std::array<std::byte, 2> read{};
    ASSERT_TRUE(read_all(*file, 14, read));
    EXPECT_EQ(read, written);
    EXPECT_FALSE(read_all(*file, 15, read));
}

// The system would end the process (SIGXFSZ).
TEST(memory_file, refuses_a_length_beyond_the_limit_of_files)
{
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit short_ones{4096, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &short_ones), 0);
    const auto fits = make_memory_file("ucx_layout_test", 4096, F_SEAL_SHRINK);
    const auto file = make_memory_file("ucx_layout_test", 4097, F_SEAL_SHRINK);
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_TRUE(fits.has_value());
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, errc::no_memory);
    EXPECT_NE(file.error().message.find("RLIMIT_FSIZE"), std::string::npos);
}

TEST(memory_file, refuses_a_length_that_no_file_has)
{
    const auto file = make_memory_file("ucx_layout_test", ~std::uint64_t{0}, F_SEAL_SHRINK);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, errc::no_memory);
}

} // namespace
