#include "is_mapped.h"
#include "sys/fd.h"
#include "sys/kept_fd.h"
#include "sys/mapping.h"
#include "sys/rollback.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include <fcntl.h>

namespace
{

using namespace ucxl;
using ucxl::test::is_mapped;

bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(owned_fd, closes_what_it_still_has)
{
    int first  = -1;
    int second = -1;
    {
        owned_fd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
        ASSERT_TRUE(file);
        first = file.get();
        owned_fd moved(std::move(file));
        EXPECT_FALSE(file);
        EXPECT_EQ(moved.get(), first);
        owned_fd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
        second = other.get();
        moved  = std::move(other);
        EXPECT_FALSE(is_open(first)) << "what was assigned to is closed";
        EXPECT_TRUE(is_open(second));
    }
    EXPECT_FALSE(is_open(second));
}

TEST(owned_fd, does_not_close_what_it_released)
{
    int fd = -1;
    {
        owned_fd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
        fd = file.release();
    }
    EXPECT_TRUE(is_open(fd));
    close(fd);
}

TEST(kept_fd, closes_its_own_file_and_no_other_that_has_its_number)
{
    int number = -1;
    {
        const kept_fd file(owned_fd(open("/dev/null", O_RDONLY | O_CLOEXEC)));
        ASSERT_TRUE(file.is_there());
        number = file.get();
    }
    EXPECT_FALSE(is_open(number));
    {
        kept_fd file(owned_fd(open("/dev/null", O_RDONLY | O_CLOEXEC)));
        number = file.get();
        const owned_fd other(open("/dev/zero", O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(dup3(other.get(), number, O_CLOEXEC), number);
        EXPECT_FALSE(file.is_there());
        EXPECT_TRUE(file);
        file = {};
        EXPECT_FALSE(file);
    }
    EXPECT_TRUE(is_open(number));
    close(number);
    EXPECT_FALSE(kept_fd(owned_fd{}));
}

TEST(owned_mapping, unmaps_what_it_still_has)
{
    const std::byte* page = nullptr;
    {
        auto mapped = owned_mapping::map(4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_TRUE(mapped.has_value()) << mapped.error().message;
        page = mapped->start();
        owned_mapping moved(std::move(*mapped));
        EXPECT_EQ(moved.start(), page);
        EXPECT_EQ(moved.length(), 4096u);
        EXPECT_EQ(mapped->start(), nullptr);
        EXPECT_TRUE(is_mapped(page));
    }
    EXPECT_FALSE(is_mapped(page));
}

TEST(owned_mapping, says_how_long_a_mapping_failed)
{
    const auto mapped = owned_mapping::map(0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_FALSE(mapped.has_value());
    EXPECT_EQ(mapped.error().code, errc::no_memory);
    EXPECT_TRUE(mapped.error().message.contains("0 bytes")) << mapped.error().message;
}

TEST(rollback, undoes_after_an_exception_and_not_after_success)
{
    int undone     = 0;
    const auto run = [&](bool fails) {
        rollback undo([&] { ++undone; });
        if (fails) {
            throw std::runtime_error("failed");
        }
        undo.cancel();
    };
    run(false);
    EXPECT_EQ(undone, 0);
    EXPECT_THROW(run(true), std::runtime_error);
    EXPECT_EQ(undone, 1);
}

} // namespace
