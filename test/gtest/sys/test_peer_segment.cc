// System V segments of a peer: where memory is in one, and which are attached.
#include "support/forked_process.h"
#include "support/must.h"
#include "sys/mapping.h"
#include "sys/peer_segment.h"

#include <gtest/gtest.h>

#include <cstring>

#include <sys/shm.h>
#include <unistd.h>

namespace
{

using namespace ucxl;
using ucxl::test::holds_in_child;
using ucxl::test::must;

constexpr std::uint64_t length = 64 << 10;

// Removed at once, as UCX does: it ends with the last process that has attached it.
class segment
{
public:
    segment() : _number(shmget(IPC_PRIVATE, length, IPC_CREAT | 0600)), _start(shmat(_number, nullptr, 0))
    {
        shmctl(_number, IPC_RMID, nullptr);
    }
    ~segment() { detach(); }
    segment(const segment&)            = delete;
    segment& operator=(const segment&) = delete;

    void detach()
    {
        if (_start != nullptr) {
            shmdt(_start);
            _start = nullptr;
        }
    }
    int number() const { return _number; }
    char* start() const { return static_cast<char*>(_start); }

private:
    int _number;
    void* _start;
};

TEST(peer_segment, is_found_by_an_address_in_it)
{
    const segment own;
    const auto range = shared_range_around(own.start() + 5000, length - 5000);
    ASSERT_TRUE(range);
    EXPECT_EQ(number_of_segment(*range), own.number());
    EXPECT_EQ(range->file_offset_of(reinterpret_cast<std::uintptr_t>(own.start()) + 5000), 5000u);
}

TEST(peer_segment, is_none_of_other_shared_memory)
{
    const auto other = must(owned_mapping::map(length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const auto range = shared_range_around(other.start(), length);
    ASSERT_TRUE(range);
    EXPECT_FALSE(number_of_segment(*range));
}

TEST(peer_segment, shows_the_memory_of_its_maker_as_long_as_it_is_attached)
{
    segment own;
    const pid_t maker = getpid();
    std::strcpy(own.start() + 5000, "seen");
    EXPECT_TRUE(holds_in_child([&] {
        const int number = own.number();
        own.detach(); // what fork() gave to the child
        const auto attached = must(peer_segment::attach(maker, number, length));
        const bool is_seen  = std::strcmp(reinterpret_cast<char*>(attached.start()) + 5000, "seen") == 0;
        std::strcpy(reinterpret_cast<char*>(attached.start()) + 9000, "written");
        return is_seen;
    }));
    EXPECT_STREQ(own.start() + 9000, "written");
    shmid_ds status{};
    ASSERT_EQ(0, shmctl(own.number(), IPC_STAT, &status));
    EXPECT_EQ(status.shm_nattch, 1u);
}

TEST(peer_segment, of_another_process_or_shorter_than_it_says_is_refused)
{
    segment own;
    EXPECT_FALSE(peer_segment::attach(getppid(), own.number(), length));
    EXPECT_FALSE(peer_segment::attach(getpid(), own.number(), length + 1));
    EXPECT_FALSE(peer_segment::attach(getpid(), -1, length));
    own.detach();
    EXPECT_FALSE(peer_segment::attach(getpid(), own.number(), length));
}

} // namespace
