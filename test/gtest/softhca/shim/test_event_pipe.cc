#include "softhca/shim/host/event_pipe.h"

#include "support/forked_process.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace ucxl::softhca
{

namespace
{

struct event {
    std::uint64_t value;
    std::uint64_t number;
    bool operator==(const event&) const = default;
};

class event_pipe : public ::testing::Test
{
protected:
    event_pipe()
    {
        EXPECT_EQ(::pipe2(_ends.data(), O_NONBLOCK), 0);
        _own = ::open(("/proc/self/fd/" + std::to_string(_ends[1])).c_str(), O_RDWR | O_NONBLOCK);
    }

    ~event_pipe() override
    {
        for (const int fd : {_ends[0], _ends[1], _own}) {
            ::close(fd);
        }
    }

    bool append(const event& one) { return append_event(_own, std::as_bytes(std::span(&one, 1))); }
    std::uint32_t remove(std::uint64_t value) { return remove_events(_own, sizeof(event), value); }

    // Reads as a program does, up to that many events.
    std::vector<event> read(std::size_t most = SIZE_MAX)
    {
        std::vector<event> found;
        event one{};
        while (found.size() < most && ::read(_ends[0], &one, sizeof(one)) == sizeof(one)) {
            found.push_back(one);
        }
        return found;
    }

    std::array<int, 2> _ends{};
    int _own = -1;
};

TEST_F(event_pipe, more_events_than_a_pipe_usually_holds_stay_in_order)
{
    constexpr std::uint64_t number = 21'000;
    for (std::uint64_t i = 0; i < number; ++i) {
        ASSERT_TRUE(append({.value = i % 3, .number = i}));
    }
    EXPECT_EQ(remove(1), number / 3);
    EXPECT_EQ(remove(1), 0u);
    const std::vector<event> left = read();
    ASSERT_EQ(left.size(), number - number / 3);
    std::uint64_t next = 0;
    for (const event& each : left) {
        ASSERT_EQ(each, (event{.value = next % 3, .number = next}));
        next += next % 3 == 0 ? 2 : 1;
    }
}

TEST_F(event_pipe, what_was_read_already_is_not_counted)
{
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_TRUE(append({.value = i % 2, .number = i}));
    }
    EXPECT_EQ(read(301).size(), 301u);
    EXPECT_EQ(remove(1), 350u);
    EXPECT_EQ(remove(0), 349u);
    EXPECT_EQ(remove(0), 0u);
    EXPECT_TRUE(read().empty());
    EXPECT_EQ(errno, EAGAIN);
}

TEST_F(event_pipe, removing_finds_room_for_what_stays_in_a_full_pipe)
{
    const auto whole = static_cast<std::size_t>(::fcntl(_own, F_GETPIPE_SZ)) / sizeof(event);
    for (std::uint64_t i = 0; i < whole; ++i) {
        ASSERT_TRUE(append({.value = 7, .number = i}));
    }
    ASSERT_EQ(static_cast<std::size_t>(::fcntl(_own, F_GETPIPE_SZ)), whole * sizeof(event));
    EXPECT_EQ(remove(8), 0u);
    EXPECT_EQ(static_cast<std::size_t>(::fcntl(_own, F_GETPIPE_SZ)), whole * sizeof(event));
    EXPECT_EQ(read().size(), whole);
}

// In another process, because a dropped privilege does not come back.
TEST_F(event_pipe, where_the_system_gives_no_more_room_events_are_refused_and_none_is_damaged)
{
    ucxl::test::forked_process other([this](ucxl::test::forked_process&) {
        ucxl::test::give_up_privileges();
        std::uint64_t accepted = 0;
        while (accepted < (1U << 24) && append({.value = 7, .number = accepted})) {
            ++accepted;
        }
        EXPECT_FALSE(append({.value = 7, .number = accepted}));
        EXPECT_GT(accepted, 4000u);
        EXPECT_EQ(remove(8), 0u);
        EXPECT_EQ(read(1000).back().number, 999u);
        EXPECT_TRUE(append({.value = 8, .number = accepted}));
        EXPECT_EQ(remove(8), 1u);
        const std::vector<event> left = read();
        ASSERT_EQ(left.size(), accepted - 1000);
        EXPECT_EQ(left.back().number, accepted - 1);
    });
    EXPECT_EQ(other.join(), 0);
}

TEST(no_event_pipe, nothing_is_read_from_or_written_to_what_is_none)
{
    EXPECT_FALSE(append_event(-1, std::as_bytes(std::span("event"))));
    EXPECT_EQ(remove_events(-1, sizeof(event), 0), 0u);
}

} // namespace

} // namespace ucxl::softhca
