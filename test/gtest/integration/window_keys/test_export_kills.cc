// Hosts and DPUs that are killed at any moment while they share memory: the other side sees an error at once and works
// on with the next one, and nothing stays on the device.
//
// UCXL_TEST_KILLS says how many are killed; the default takes a second.
#include "device_control.h"
#include "export_survivor.h"

#include "support/process.h"
#include "support/random.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

constexpr unsigned rounds_with_the_last = 10;
constexpr unsigned until_killed         = ~0u;

unsigned num_kills()
{
    const char* const text = std::getenv("UCXL_TEST_KILLS");
    return text == nullptr ? 5 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

// Socket pairs, the ends of the survivor first.
class sockets
{
public:
    explicit sockets(unsigned number)
    {
        for (unsigned i = 0; i < number; ++i) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
                ADD_FAILURE() << "socketpair";
                return;
            }
            _survivors.push_back(moved(pair[0]));
            _partners.push_back(moved(pair[1]));
        }
    }
    ~sockets()
    {
        close_ends_of_survivor();
        for (unsigned i = 0; i < _partners.size(); ++i) {
            close_end_of_partner(i);
        }
    }
    sockets(const sockets&)            = delete;
    sockets& operator=(const sockets&) = delete;

    const std::vector<int>& of_survivor() const { return _survivors; }
    int of_partner(unsigned i) const { return _partners[i]; }
    void close_ends_of_survivor()
    {
        for (const int fd : _survivors) {
            close(fd);
        }
        _survivors.clear();
    }
    void close_end_of_partner(unsigned i)
    {
        if (_partners[i] >= 0) {
            close(_partners[i]);
        }
        _partners[i] = -1;
    }

private:
    // Out of the way of the descriptors that a process gets.
    static int moved(int fd)
    {
        const int to = fcntl(fd, F_DUPFD_CLOEXEC, 1000);
        close(fd);
        return to;
    }

    std::vector<int> _survivors;
    std::vector<int> _partners;
};

class killed_side : public testing::TestWithParam<const char*>
{
protected:
    static std::unique_ptr<process> start(const std::string& role, unsigned killed, unsigned rounds,
                                          const std::vector<int>& channels, std::uint64_t seed)
    {
        return std::make_unique<process>(
            program_path(),
            std::vector<std::string>{"--share", role, std::to_string(killed), std::to_string(rounds),
                                     std::to_string(seed)},
            process_options{.variables   = {{"UCX_LAYOUT_KEYS_EXPORT_SPARE", "4"}, {"UCX_LOG_LEVEL", "fatal"}},
                            .descriptors = channels});
    }

    // Sometimes before it shares anything.
    static void kill_some_time(process& partner, random& random)
    {
        if (random.one_in(4)) {
            std::this_thread::sleep_for(std::chrono::microseconds(random.below(60'000)));
        } else {
            ASSERT_TRUE(partner.wait_for_output("sharing\n")) << partner.out();
            std::this_thread::sleep_for(std::chrono::microseconds(random.below(40'000)));
        }
        partner.kill(SIGKILL);
        const auto ended = partner.wait();
        EXPECT_EQ(ended.status, 128 + SIGKILL) << ended.output();
    }
};

TEST_P(killed_side, ends_calls_of_the_other_one_soon_and_leaves_it_working)
{
    const std::string killed   = GetParam();
    const std::string survives = killed == "host" ? "dpu" : "host";
    const auto kills           = num_kills();
    const device_control device;
    const auto before = device.objects();
    sockets channels(kills + 1);
    random random(derive_seed(run_seed(), killed == "host" ? 0 : 1));
    const auto survivor = start(survives, kills, rounds_with_the_last, channels.of_survivor(), random.next());
    channels.close_ends_of_survivor();
    for (unsigned i = 0; i <= kills && !HasFailure(); ++i) {
        const auto rounds  = i < kills ? until_killed : rounds_with_the_last;
        const auto partner = start(killed, 0, rounds, {channels.of_partner(i)}, random.next());
        channels.close_end_of_partner(i);
        if (i < kills) {
            kill_some_time(*partner, random);
        } else {
            const auto ended = partner->wait();
            EXPECT_EQ(ended.status, 0) << ended.output();
        }
    }
    const auto ended = survivor->wait();
    EXPECT_EQ(ended.status, 0) << ended.output();
    std::printf("%s", ended.out.c_str());
    EXPECT_EQ(device.objects(), before);
}

INSTANTIATE_TEST_SUITE_P(every, killed_side, testing::Values("host", "dpu"),
                         [](const auto& each) { return each.param; });

} // namespace
} // namespace ucxl::test
