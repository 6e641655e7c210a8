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
constexpr const char* small_case  = "case 1\n"; // 4 KB of 8 bytes each

// Bytes through a socket. The second process is slow to return from what it sent.
class socket_side : public side
{
public:
    socket_side(int socket, bool is_slow) : _socket(socket), _is_slow(is_slow) {}

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
        if (_is_slow) { // synchronises nothing: a slow side is what the test is about
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
    }

    void receive(std::byte* to) const
    {
        if (recv(_socket, to, _case.length, MSG_WAITALL) != static_cast<ssize_t>(_case.length)) {
            throw std::runtime_error("recv");
        }
    }

    int _socket;
    bool _is_slow;
    layout_case _case;
    side_memory _memory;
    std::vector<std::byte> _bytes;
};

int serve(int socket, bool is_first, const std::string& memory, const std::string& fifo)
{
    try {
        socket_side by(socket, !is_first);
        side_loop(by, is_first, memory, side_length).serve(fifo);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s process: %s\n", is_first ? "first" : "second", error.what());
        return 1;
    }
    return 0;
}

TEST(transfer_sides, the_first_process_answers_when_the_second_one_has_compared)
{
    scratch_folder folder;
    const std::string fifo = folder.add_fifo("lines");
    const shared_memory memory(2 * side_length);
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    const std::string path = memory.path();
    const pid_t second     = fork();
    if (second == 0) {
        close(sockets[0]);
        _exit(serve(sockets[1], false, path, fifo));
    }
    close(sockets[1]);
    std::istringstream lines(small_case);
    std::ostringstream answers;
    std::streambuf* const input  = std::cin.rdbuf(lines.rdbuf());
    std::streambuf* const output = std::cout.rdbuf(answers.rdbuf());
    const int status             = serve(sockets[0], true, path, fifo);
    // As the next pair does; no two places have the same.
    for (std::size_t i = 0; i < memory.length(); ++i) {
        memory.data()[i] = static_cast<std::byte>(i * 13 + i / 256);
    }
    std::cin.rdbuf(input);
    std::cout.rdbuf(output);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(answers.str(), "4096\n");
    int ended = -1;
    ASSERT_EQ(waitpid(second, &ended, 0), second);
    EXPECT_EQ(ended, 0) << "the second process compared what others had written";
}

} // namespace
} // namespace ucxl::bench
