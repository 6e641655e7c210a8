#include "sys/memory_file.h"

#include <gtest/gtest.h>

#include <array>

#include <fcntl.h>
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

TEST(memory_file, refuses_a_length_that_no_file_has)
{
    const auto file = make_memory_file("ucx_layout_test", ~std::uint64_t{0}, F_SEAL_SHRINK);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, errc::no_memory);
}

} // namespace
