// What happens when two processes do not agree, or one of them goes away.
#include "support/wait_until.h"
#include "tool.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace ucxl::test
{

namespace
{

using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

constexpr const char* tool = "ucx_layout_perftest";

// A TCP client that knows nothing of UCX.
class raw_client
{
public:
    explicit raw_client(const std::string& port) : _fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in address{};
        address.sin_family      = AF_INET;
        address.sin_port        = htons(static_cast<std::uint16_t>(std::stoi(port)));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_TRUE(wait_until([&] { return is_port_open(std::stoi(port)); }));
        EXPECT_EQ(connect(_fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }
    ~raw_client() { close(_fd); }
    raw_client(const raw_client&)            = delete;
    raw_client& operator=(const raw_client&) = delete;

    template <typename T>
    void send(const T& value)
    {
        EXPECT_EQ(static_cast<ssize_t>(sizeof(value)), ::send(_fd, &value, sizeof(value), MSG_NOSIGNAL));
    }
    void greet(std::uint32_t version)
    {
        send(std::array<char, 8>{'U', 'C', 'X', 'L', 'P', 'E', 'R', 'F'});
        send(std::array<std::uint32_t, 2>{version, 0});
    }

private:
    int _fd;
};

struct frame {
    std::uint32_t magic = 0x4c584355;
    std::uint32_t kind;
    std::uint64_t length;
};
constexpr std::uint32_t kind_failed  = 1;
constexpr std::uint32_t kind_address = 3;

// Until both are in the middle of an exchange: they have used some time of the processor for it.
void wait_until_busy(process& server, const process& client)
{
    ASSERT_TRUE(server.wait_for_output("bytes")) << server.out();
    for (const process* each : {static_cast<const process*>(&server), &client}) {
        clockid_t clock;
        ASSERT_EQ(clock_getcpuclockid(each->pid(), &clock), 0);
        const double before = processor_seconds(clock);
        ASSERT_TRUE(wait_until([&] { return processor_seconds(clock) > before + 0.02; }));
    }
}

// A run that would take minutes.
std::vector<std::string> endless(const std::string& port, const char* test)
{
    return {"localhost", "-p", port, "-t", test, "-l", "strided(1024,64,128)", "--time", "300", "--rounds", "600"};
}

TEST(perftest_setup, server_is_silent_until_a_client_comes)
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port});
    ASSERT_TRUE(wait_until([&] { return is_port_open(std::stoi(port)); }));
    EXPECT_EQ("", server.out());
    const outcome client =
        run_tool(tool, {"localhost", "-p", port, "-t", "tag_lat", "-l", "strided(64,8,16),512", "-n", "10"});
    EXPECT_EQ(0, client.status) << client.err;
    EXPECT_THAT(client.out, HasSubstr("verified"));
    const outcome served = server.wait();
    EXPECT_EQ(0, served.status) << served.err;
    EXPECT_THAT(served.out, StartsWith("Accepted connection from"));
    EXPECT_THAT(served.out, HasSubstr("tag_lat, 512 bytes"));
}

TEST(perftest_setup, port_in_use_is_named)
{
    const std::string port = free_port();
    process first(program_path(tool), {"-p", port});
    {
        const raw_client until_it_listens(port);
    }
    process holder(program_path(tool), {"-p", port}); // the first one ends after its client; this one takes over
    first.wait();
    ASSERT_TRUE(wait_until([&] { return is_port_open(std::stoi(port)) || holder.has_ended(); }));
    const bool held      = !holder.has_ended();
    const outcome second = held ? run_tool(tool, {"-p", port}) : holder.wait();
    EXPECT_EQ(1, second.status);
    EXPECT_THAT(second.err, HasSubstr("cannot listen on port " + port + ": Address already in use"));
}

TEST(perftest_setup, nobody_listening_is_an_error)
{
    const outcome client = run_tool(tool, {"localhost", "-p", free_port(), "-t", "tag_lat", "-s", "8"});
    EXPECT_EQ(1, client.status);
    EXPECT_THAT(client.err, HasSubstr("cannot connect to localhost port"));
}

// In a network of its own, with its loopback interface up (SIOCSIFFLAGS), with two ports for clients, one of which the
// client asks for.
TEST(perftest_setup, connection_with_itself_is_nobody_listening)
{
    const std::string command = "python3 -c \"import fcntl, socket, struct; "
                                "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14x', b'lo', 1))\" && "
                                "echo 20000 20001 > /proc/sys/net/ipv4/ip_local_port_range && exec " +
                                program_path(tool) + " 127.0.0.1 -p 20000 -t tag_lat -s 8";
    std::vector<std::string> arguments{"--net", "sh", "-c", command};
    if (geteuid() != 0) {
        arguments.insert(arguments.begin(), "--map-root-user");
    }
    process client("/usr/bin/unshare", arguments);
    const outcome ended = client.wait();
    if (ended.status != 0 && ended.err.find("unshare") != std::string::npos) {
        GTEST_SKIP() << "no network of its own: " << ended.err;
    }
    EXPECT_EQ(1, ended.status);
    EXPECT_THAT(ended.err, HasSubstr("cannot connect to 127.0.0.1 port 20000: Connection refused"));
}

TEST(perftest_setup, layouts_of_different_length_are_refused_by_the_client)
{
    const outcome client = run_tool(tool, {"--self", "-t", "tag_lat", "-l", "strided(4,8,16),64"});
    EXPECT_EQ(1, client.status);
    EXPECT_THAT(client.err, HasSubstr("-s 32: not a multiple of the packed length 64 of the receive layout"));
}

TEST(perftest_setup, layout_of_the_server_that_does_not_fit_is_told_on_both_sides)
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port, "-l", "strided(3,8,16)"});
    const outcome client = run_tool(tool, {"localhost", "-p", port, "-t", "tag_lat", "-l", "strided(4,8,16)"});
    const outcome served = server.wait();
    EXPECT_EQ(1, client.status);
    EXPECT_EQ(1, served.status);
    EXPECT_THAT(client.err, HasSubstr("-s 32: not a multiple of the packed length 24 of the server's send layout"));
    EXPECT_THAT(served.err, HasSubstr("-s 32: not a multiple of the packed length 24 of the server's send layout"));
}

TEST(perftest_setup, server_may_use_a_layout_of_its_own)
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port, "-l", "strided(2,16,40)"});
    const outcome client =
        run_tool(tool, {"localhost", "-p", port, "-t", "tag_lat", "-l", "strided(4,8,16)", "-n", "10"});
    const outcome served = server.wait();
    EXPECT_EQ(0, client.status) << client.err;
    EXPECT_EQ(0, served.status) << served.err;
    EXPECT_THAT(served.out, HasSubstr("strided(2,16,40)"));
}

// What a server says that gives up because of what a client does.
std::string refusal_of(void (*client_does)(raw_client& client))
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port});
    raw_client client(port);
    client_does(client);
    const outcome served = server.wait();
    EXPECT_EQ(1, served.status);
    return served.err;
}

TEST(perftest_setup, stranger_on_the_port_is_refused)
{
    EXPECT_THAT(refusal_of([](raw_client& client) { client.send(std::array<char, 16>{"GET / HTTP/1.1\n"}); }),
                HasSubstr("is not ucx_layout_perftest"));
}

TEST(perftest_setup, other_version_is_refused)
{
    EXPECT_THAT(refusal_of([](raw_client& client) { client.greet(99); }),
                HasSubstr("speaks version 99 of the set-up protocol"));
}

TEST(perftest_setup, announced_length_is_bounded)
{
    EXPECT_THAT(refusal_of([](raw_client& client) {
                    client.greet(3);
                    client.send(frame{.kind = kind_address, .length = std::uint64_t{1} << 60});
                }),
                HasSubstr("announced a message of 1152921504606846976 bytes, the limit is 65536"));
}

// UCX is not told how long it is. AddressSanitizer sees a byte that is read behind it.
TEST(perftest_setup, address_that_ends_too_soon_is_refused)
{
    EXPECT_THAT(refusal_of([](raw_client& client) {
                    client.greet(3);
                    client.send(frame{.kind = kind_address, .length = 1});
                    client.send(std::byte{0});
                }),
                HasSubstr("ucp_ep_create"));
}

TEST(perftest_setup, last_words_of_the_peer_cannot_control_the_terminal)
{
    EXPECT_THAT(refusal_of([](raw_client& client) {
                    client.greet(3);
                    client.send(frame{.kind = kind_failed, .length = 8});
                    client.send(std::array<char, 8>{'\033', '[', '2', 'J', 'b', 'y', 'e', '\n'});
                }),
                HasSubstr("?[2Jbye?"));
}

class perftest_peer_death : public testing::TestWithParam<const char*>
{
};

TEST_P(perftest_peer_death, client_notices_a_dead_server)
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port});
    process client(program_path(tool), endless(port, GetParam()));
    ASSERT_NO_FATAL_FAILURE(wait_until_busy(server, client));
    server.kill(SIGKILL);
    const outcome result = client.wait(20s);
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, testing::AnyOf(HasSubstr("closed the connection"), HasSubstr("reset by peer"),
                                           HasSubstr("Endpoint"), HasSubstr("Broken pipe")));
}

TEST_P(perftest_peer_death, server_notices_a_dead_client)
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port});
    process client(program_path(tool), endless(port, GetParam()));
    ASSERT_NO_FATAL_FAILURE(wait_until_busy(server, client));
    client.kill(SIGKILL);
    const outcome result = server.wait(20s);
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, testing::AnyOf(HasSubstr("closed the connection"), HasSubstr("reset by peer"),
                                           HasSubstr("Endpoint"), HasSubstr("Broken pipe")));
}

INSTANTIATE_TEST_SUITE_P(all, perftest_peer_death, testing::Values("tag_lat", "ucp_put_bw"),
                         [](const testing::TestParamInfo<const char*>& each) { return std::string(each.param); });

TEST(perftest_setup, impossible_method_alone_is_an_error)
{
    const outcome result = run_tool(tool, {"--self", "-t", "ucp_get", "-l", "strided(4,8,16)", "--method", "datatype"});
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("method datatype: ucp_get puts and gets contiguous memory only"));
}

TEST(perftest_setup, overlapping_receive_layout_is_refused_when_checked)
{
    const std::vector<std::string> arguments{"--self", "-t", "tag_lat", "-l", "strided(4,8,4)", "-n", "10"};
    const outcome checked = run_tool(tool, arguments);
    EXPECT_EQ(1, checked.status);
    EXPECT_THAT(checked.err, HasSubstr("describes some byte twice"));
    std::vector<std::string> unchecked = arguments;
    unchecked.emplace_back("--no-validate");
    EXPECT_EQ(0, run_tool(tool, unchecked).status);
}

struct bad_line {
    std::vector<std::string> arguments;
    const char* message;
};

class perftest_bad_options : public testing::TestWithParam<bad_line>
{
};

TEST_P(perftest_bad_options, are_named_and_end_with_status_2)
{
    const outcome result = run_tool(tool, GetParam().arguments);
    EXPECT_EQ(2, result.status) << result.out;
    EXPECT_THAT(result.err, HasSubstr(GetParam().message));
    EXPECT_EQ("", result.out);
}

INSTANTIATE_TEST_SUITE_P(
    all, perftest_bad_options,
    testing::Values(
        bad_line{{"--self", "-t", "tag_latency", "-s", "8"}, "\"tag_latency\" is not one of tag_lat"},
        bad_line{{"--self", "-s", "8"}, "-t TEST is missing"}, bad_line{{"--self", "-t", "tag_lat"}, "give the data"},
        bad_line{{"--self", "localhost", "-t", "tag_lat", "-s", "8"}, "--self starts its own server"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8x"}, "\"8x\" is not a size"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "0"}, "\"0\" is not a size"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "--method", "magic"}, "\"magic\" is not one of window"},
        bad_line{{"--self", "-t", "tag_lat", "-l", "1,2,3"}, "3 layouts given"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-T", "2"}, "only one thread"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-O", "0"}, "-O"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-v", "--json"}, "-v and --json exclude each other"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-p", "70000"}, "-p"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "--bogus"}, "--bogus"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-m", "gpu"},
                 "-m: \"gpu\" is not one of app, host, rdma, region, heap"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-m", "host,host,host"}, "-m: 3 types given"},
        bad_line{{"--self", "-t", "tag_lat", "-l", "strided(2,4,8)", "-m", "rdma"}, "-l: memory of type rdma"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-m", "rdma", "--allocate"}, "--allocate: memory of type"},
        bad_line{{"--self", "-t", "ucp_put_lat", "-s", "8", "-m", "host,rdma"}, "polls its memory"},
        bad_line{{"--self", "-t", "tag_bw", "-s", "8", "--live"}, "--live: tag_bw has no messages that go back"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "-m", "rdma", "--live"}, "--live: tag_lat has no messages"},
        bad_line{{"--self", "-t", "mem_map", "-s", "8", "-m", "rdma"}, "mem_map maps host memory only"},
        bad_line{{"--self", "-t", "ucp_cswap", "-m", "rdma,host"}, "new value of ucp_cswap from the local memory"},
        bad_line{{"--self", "-t", "ucp_add", "-s", "2"}, "atomic operations have 4 or 8 bytes, not 2"},
        bad_line{{"--self", "-t", "ucp_add", "-l", "8,8"}, "-l: atomic operations take one layout"},
        bad_line{{"--self", "-t", "ucp_add", "-z"}, "-z: UCP's atomic operations take no memory handles"},
        bad_line{{"--self", "-t", "tag_lat", "-s", "8", "--processes", "2"}, "--processes: only contended_fadd"},
        bad_line{{"--self", "-t", "contended_fadd", "--processes", "0"}, "--processes"},
        bad_line{{"--self", "-t", "contended_fadd", "-m", "rdma,rdma"}, "contended_fadd fetches into host memory"},
        bad_line{{"--self", "-t", "contended_fadd", "-s", "4,8"}, "-s: contended_fadd has one variable"},
        bad_line{{"--self", "-t", "contended_fadd", "--json"}, "--json: contended_fadd does not take it"},
        bad_line{{"localhost", "-t", "contended_fadd", "-n", "5"}, "-n: the server of contended_fadd decides it"}));

TEST(perftest_layout, without_bytes_is_refused)
{
    const outcome result = run_tool(tool, {"--self", "-t", "tag_lat", "-l", "contig(0,8)"});
    EXPECT_EQ(1, result.status);
    EXPECT_EQ("ucx_layout_perftest: the send layout has no bytes\n", result.err);
}

TEST(perftest_output, that_is_lost_is_a_failure)
{
    for (const char* const format : {"", "--json"}) {
        process lost("/bin/sh",
                     {"-c", "exec \"$0\" --self -t tag_lat -s 8 -n 10 $1 > /dev/full", program_path(tool), format});
        const outcome result = lost.wait();
        EXPECT_EQ(1, result.status) << format;
        EXPECT_THAT(result.err, StartsWith("ucx_layout_perftest: standard output: No space left on device\n"));
    }
}

TEST(perftest_output, csv_has_as_many_fields_as_its_header)
{
    const outcome result =
        run_tool(tool, {"--self", "-t", "tag_lat", "-s", "8,16", "--method", "window,contig", "-n", "20", "-v"});
    ASSERT_EQ(0, result.status) << result.err;
    std::istringstream lines(result.out);
    std::vector<long> commas;
    for (std::string line; std::getline(lines, line);) {
        commas.push_back(std::count(line.begin(), line.end(), ','));
    }
    EXPECT_EQ(std::vector<long>(5, 12), commas) << result.out;
}

TEST(perftest_output, bad_layout_names_the_column)
{
    const outcome result = run_tool(tool, {"--self", "-t", "tag_lat", "-l", "strided(4,8"});
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("column"));
}

} // namespace

} // namespace ucxl::test
