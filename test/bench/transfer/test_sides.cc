// The two processes of `bench transfer` by a side that is as slow as it may be: others may write the pages that all
// pairs share as soon as the first process has answered.
#include "bench/common/scratch_folder.h"
#include "sides.h"

#include <chrono>
#include <sstream>
#include <thread>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

constexpr std::size_t side_length = std::size_t{1} << 20;
constexpr double slow_seconds     = 0.1;
constexpr const char* small_case  = "case 1\n"; // 4 KB of 8 bytes each

// Bytes through a socket. The second process is slow to return from what it sent.
class socket_side : public side
{
public:
    // Slow where there is something to count what it has sent.
    socket_side(int socket, std::atomic<unsigned>* num_sent) : _socket(socket), _num_sent(num_sent) {}

    void prepare(const layout_case& moved, const side_memory& memory) override
    {
        _case   = moved;
        _memory = memory;
        _bytes.resize(moved.length);
    }

    void send_packed() override { send(_memory.packed_source.data()); }
    void receive_packed() override { receive(_memory.packed_target.data()); }

    void send_strided() override
    {
        _case.hand.pack(_bytes.data(), _memory.source.data());
        send(_bytes.data());
    }

    void receive_strided() override
    {
        receive(_bytes.data());
        _case.hand.unpack(_memory.target.data(), _bytes.data());
    }

private:
    void send(const std::byte* from) const
    {
        if (::send(_socket, from, _case.length, MSG_NOSIGNAL) != static_cast<ssize_t>(_case.length)) {
            throw std::runtime_error("send");
        }
        if (_num_sent != nullptr) { // synchronises nothing: a slow side is what the test is about
            std::this_thread::sleep_for(std::chrono::duration<double>(slow_seconds));
            ++*_num_sent;
        }
    }

    void receive(std::byte* to) const
    {
        if (recv(_socket, to, _case.length, MSG_WAITALL) != static_cast<ssize_t>(_case.length)) {
            throw std::runtime_error("recv");
        }
    }

    int _socket;
    std::atomic<unsigned>* _num_sent;
    layout_case _case;
    side_memory _memory;
    std::vector<std::byte> _bytes;
};

// How many sends of the second process have returned. Behind what small_case takes of its memory.
std::atomic<unsigned>& num_sent(const shared_memory& memory)
{
    return *reinterpret_cast<std::atomic<unsigned>*>(memory.data() + 2 * side_length - 64);
}

int serve(int socket, bool is_first, const std::string& path, const std::string& fifo)
{
    try {
        const shared_memory memory(path, pair_length(side_length));
        const auto make = [&] { return std::make_unique<socket_side>(socket, is_first ? nullptr : &num_sent(memory)); };
        side_loop(make, is_first, path, side_length).serve(fifo);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s process: %s\n", is_first ? "first" : "second", error.what());
        return 1;
    }
    return 0;
}

// The answers to these lines. then(memory): as soon as the last one is there.
template <typename Fn>
std::string answers_to(const std::string& text, Fn&& then)
{
    scratch_folder folder;
    const std::string fifo = folder.add_fifo("lines");
    const shared_memory memory(pair_length(side_length));
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) {
        throw std::runtime_error("socketpair");
    }
    const std::string path = memory.path();
    const pid_t second     = fork();
    if (second == 0) {
        close(sockets[0]);
        _exit(serve(sockets[1], false, path, fifo));
    }
    close(sockets[1]);
    std::istringstream lines(text);
    std::ostringstream answers;
    std::streambuf* const input  = std::cin.rdbuf(lines.rdbuf());
    std::streambuf* const output = std::cout.rdbuf(answers.rdbuf());
    const int status             = serve(sockets[0], true, path, fifo);
    then(memory);
    std::cin.rdbuf(input);
    std::cout.rdbuf(output);
    EXPECT_EQ(status, 0);
    int ended = -1;
    EXPECT_EQ(waitpid(second, &ended, 0), second);
    EXPECT_EQ(ended, 0) << "the second process compared what others had written";
    close(sockets[0]);
    return answers.str();
}

TEST(transfer_sides, the_first_process_answers_when_the_second_one_has_compared)
{
    EXPECT_EQ(answers_to(small_case,
                         [](const shared_memory& memory) {
                             // As the next pair does; no two places have the same.
                             for (std::size_t i = 0; i < 2 * side_length; ++i) {
                                 memory.data()[i] = static_cast<std::byte>(i * 13 + i / 256);
                             }
                         }),
              "4096\n");
}

TEST(transfer_sides, the_first_process_answers_when_the_second_one_has_sent)
{
    constexpr unsigned num_methods = 5;
    unsigned sent_at_answer = 0, sent_after_case = 0;
    answers_to(small_case, [&](const shared_memory& memory) { sent_after_case = num_sent(memory); });
    EXPECT_EQ(sent_after_case, num_methods);
    answers_to(std::string(small_case) + "run contiguous 1\n",
               [&](const shared_memory& memory) { sent_at_answer = num_sent(memory); });
    EXPECT_EQ(sent_at_answer, num_methods + 2) << "one to begin with and one that is measured";
}

TEST(transfer_sides, a_time_ends_when_both_have_finished)
{
    std::istringstream answers(answers_to(std::string(small_case) + "run contiguous 1\n", [](const shared_memory&) {}));
    double length = 0, seconds = 0;
    answers >> length >> seconds;
    // Half of a ping-pong. A time that began before the second process was ready for it would be twice as long.
    EXPECT_GE(seconds, slow_seconds / 2);
    EXPECT_LT(seconds, slow_seconds);
}

// What is compared is what was sent before, so a byte that a touch changed would be seen.
TEST(transfer_sides, live_data_keep_their_values)
{
    std::istringstream answers(answers_to("data live\ncase 1\nrun own-ss 3\nrun own-sc 3\nrun contiguous 1\ntrip 5\n"
                                          "data same\ncase 1\nrun own-ss 3\n",
                                          [](const shared_memory&) {}));
    double live = -1, length = 0, strided = 0, packed = 0, contiguous = 0, trip = 0, same = -1, again = 0, nothing = 0;
    answers >> live >> length >> strided >> packed >> contiguous >> trip >> same >> again >> nothing;
    EXPECT_TRUE(answers) << "some line has no answer";
    EXPECT_EQ(live, 0);
    EXPECT_EQ(length, 4096);
    EXPECT_EQ(again, 4096);
    for (const double seconds : {strided, packed, trip, nothing}) {
        EXPECT_GT(seconds, 0);
        EXPECT_LT(seconds, slow_seconds) << "nothing is sent";
    }
}

// 4 KB of 8 bytes each: the third buffer is the last one for which there is memory beside the counter.
TEST(transfer_sides, buffers_are_used_in_turn)
{
    EXPECT_EQ(answers_to("buffers 3\ncase 1\nbuffers 1\ncase 1\n", [](const shared_memory&) {}), "0\n4096\n0\n4096\n");
    unsigned sent = 0;
    answers_to("buffers 3\n" + std::string(small_case), [&](const shared_memory& memory) { sent = num_sent(memory); });
    EXPECT_EQ(sent, 3 * 5) << "each method is tried in each of them";
    answers_to("buffers 1000\n" + std::string(small_case) + "run ss 5\n", [](const shared_memory&) {});
}

TEST(transfer_sides, contiguous_memory_is_a_case_of_any_length)
{
    EXPECT_EQ(answers_to("bytes 8\nbytes 4097\n", [](const shared_memory&) {}), "8\n4097\n");
}

TEST(transfer_sides, pairs_say_that_they_are_not_pinned)
{
    if (allowed_cpus().size() > 1) {
        EXPECT_EQ(answers_to("cpus\n", [](const shared_memory&) {}), "-1\n");
    }
}

} // namespace
} // namespace ucxl::bench
