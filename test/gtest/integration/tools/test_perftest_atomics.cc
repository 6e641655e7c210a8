// Atomic operations, memory of network cards, and several processes on one variable, in real processes.
#include "tool.h"

#include "support/wait_until.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <ucp/api/ucp.h>

namespace ucxl::test
{

namespace
{

using nlohmann::json;
using testing::HasSubstr;
using namespace std::chrono_literals;
using strings = std::vector<std::string>;

constexpr const char* tool = "ucx_layout_perftest";

strings operator+(strings left, const strings& right)
{
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

std::string last_line(const std::string& text)
{
    const std::string body = text.substr(0, text.find_last_not_of('\n') + 1);
    return body.substr(body.rfind('\n') + 1);
}

// The lines that name a process by its number.
std::size_t process_lines(const std::string& text)
{
    std::istringstream lines(text);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find_first_not_of(' ');
        count +=
            first != std::string::npos && first > 0 && std::isdigit(static_cast<unsigned char>(line[first])) ? 1 : 0;
    }
    return count;
}

const strings short_run{"-n", "2000", "-w", "50", "--rounds", "2"};

// (test, bytes of a word, UCX_TLS; empty for the default)
using atomic_case = std::tuple<std::string, std::string, std::string>;

std::string name_of(const testing::TestParamInfo<atomic_case>& each)
{
    const auto& [test, bytes, tls] = each.param;
    return test + "_" + bytes + "_" + (tls.empty() ? "default" : tls.substr(0, tls.find(',')));
}

class perftest_atomics : public testing::TestWithParam<atomic_case>
{
protected:
    static environment variables()
    {
        const std::string& tls = std::get<2>(GetParam());
        return tls.empty() ? environment{} : environment{{"UCX_TLS", tls}};
    }
    static strings command() { return {"--self", "-t", std::get<0>(GetParam()), "-s", std::get<1>(GetParam())}; }
};

TEST_P(perftest_atomics, final_values_are_right_in_windows_and_in_plain_memory)
{
    const outcome result =
        run_tool(tool, command() + short_run + strings{"--method", "window,contig", "-O", "16", "--json"}, variables());
    ASSERT_EQ(0, result.status) << result.err << result.out;
    EXPECT_EQ("", result.err);
    const json run = json::parse(result.out).at("runs").at(0);
    EXPECT_EQ(std::stoi(std::get<1>(GetParam())), run.at("message_size"));
    ASSERT_EQ(2U, run.at("results").size());
    for (const json& row : run.at("results")) {
        EXPECT_EQ(2000, row.at("iterations"));
        EXPECT_EQ(2050, row.at("validated_messages"));
    }
}

TEST_P(perftest_atomics, all_words_of_a_layout_take_part)
{
    // Of several sources; 1000 is no multiple of the 11 words, or 22 of 4 bytes.
    const strings layout{"-l", "iov(16@0,24@40,1:8@-104,1:32@8,2:8@1000)", "-O", "7"};
    const outcome result = run_tool(tool, command() + layout + strings{"-n", "1000", "-w", "1"}, variables());
    ASSERT_EQ(0, result.status) << result.err << result.out;
    const std::string words = std::get<1>(GetParam()) == "8" ? "11" : "22";
    EXPECT_THAT(result.out, HasSubstr("final values right: " + words + " words in 1001 operations"));
}

INSTANTIATE_TEST_SUITE_P(all, perftest_atomics,
                         testing::Combine(testing::Values("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"),
                                          testing::Values("4", "8"),
                                          testing::Values("", "posix,lay_copy", "tcp,lay_copy")),
                         name_of);

TEST(perftest_atomics, without_checks_nothing_is_said_of_final_values)
{
    const outcome result = run_tool(tool, strings{"--self", "-t", "ucp_fadd", "--no-validate"} + short_run);
    ASSERT_EQ(0, result.status) << result.err;
    EXPECT_THAT(result.out, testing::Not(HasSubstr("final value")));
    EXPECT_THAT(result.out, testing::Not(HasSubstr("verified")));
}

TEST(perftest_atomics, a_layout_that_cuts_words_is_refused)
{
    for (const char* const layout : {"strided(4,12,16)", "strided(4,8,20)"}) {
        const outcome result = run_tool(tool, strings{"--self", "-t", "ucp_add", "-l", layout, "-s", "8"} + short_run);
        EXPECT_EQ(1, result.status) << layout;
        EXPECT_THAT(result.err, HasSubstr("-s 8: the blocks of the layout are not whole words of 8 bytes")) << layout;
    }
}

TEST(perftest_atomics, methods_without_words_are_refused)
{
    const outcome result = run_tool(tool, strings{"--self", "-t", "ucp_swap", "--method", "iov"} + short_run);
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("method iov: ucp_swap works on words where they are"));
}

TEST(perftest_memory, no_device_for_it_is_an_error_with_a_remedy)
{
    const environment no_device{{"UCX_TLS", "tcp"}};
    for (const char* const test : {"ucp_fadd", "contended_fadd"}) {
        const outcome result = run_tool(tool, {"--self", "-t", test, "-m", "rdma", "-n", "10"}, no_device);
        EXPECT_EQ(1, result.status) << test;
        EXPECT_THAT(result.err, HasSubstr("-m rdma: no device gives")) << test;
        EXPECT_THAT(result.err, HasSubstr("-m host needs none")) << test;
    }
}

TEST(perftest_memory, windows_over_it_are_refused)
{
    const outcome result = run_tool(
        tool, strings{"--self", "-t", "ucp_put_bw", "-s", "64", "-m", "host,rdma", "--method", "window"} + short_run);
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("method window: memory of type rdma is contiguous"));
}

class contended_fadd : public testing::TestWithParam<const char*>
{
protected:
    static environment variables() { return {{"UCX_TLS", GetParam()}}; }
};

TEST_P(contended_fadd, final_value_is_the_sum_of_all_processes)
{
    for (const char* const bytes : {"4", "8"}) {
        const outcome result =
            run_tool(tool, {"--self", "-t", "contended_fadd", "--processes", "4", "-n", "1500", "-O", "3", "-s", bytes},
                     variables());
        ASSERT_EQ(0, result.status) << result.err << result.out;
        EXPECT_EQ("", result.err);
        EXPECT_EQ("final value 6000 of 6000: right", last_line(result.out));
        EXPECT_EQ(4U, process_lines(result.out)) << result.out;
        EXPECT_THAT(result.out, HasSubstr("min rate"));
        EXPECT_THAT(result.out, HasSubstr("max rate"));
    }
}

INSTANTIATE_TEST_SUITE_P(all, contended_fadd, testing::Values("all", "posix", "tcp"),
                         [](const testing::TestParamInfo<const char*>& each) { return std::string(each.param); });

TEST(contended_fadd, processes_that_are_started_by_hand_do_what_the_server_says)
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port, "--processes", "3", "-n", "700", "-s", "4"});
    std::vector<std::unique_ptr<process>> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(
            std::make_unique<process>(program_path(tool), strings{"localhost", "-p", port, "-t", "contended_fadd"}));
    }
    for (const auto& client : clients) {
        const outcome result = client->wait();
        EXPECT_EQ(0, result.status) << result.err;
        EXPECT_THAT(result.out, HasSubstr("700 operations in"));
    }
    const outcome result = server.wait();
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_EQ("final value 2100 of 2100: right", last_line(result.out));
}

TEST(contended_fadd, a_process_that_goes_away_before_the_start_ends_the_server)
{
    const std::string port = free_port();
    process server(program_path(tool), {"-p", port, "--processes", "2"});
    process client(program_path(tool), {"localhost", "-p", port, "-t", "contended_fadd"});
    ASSERT_TRUE(server.wait_for_output("process 0"));
    client.kill(SIGKILL);
    const outcome result = server.wait(20s);
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("process 0"));
    EXPECT_THAT(result.err, testing::AnyOf(HasSubstr("closed the connection"), HasSubstr("reset by peer")));
}

TEST(contended_fadd, a_server_of_something_else_is_told_on_both_sides)
{
    const std::string port = free_port();
    process other(program_path(tool), {"-p", port});
    const outcome adder  = run_tool(tool, {"localhost", "-p", port, "-t", "contended_fadd"});
    const outcome served = other.wait();
    EXPECT_EQ(1, adder.status);
    EXPECT_EQ(1, served.status);
    EXPECT_THAT(adder.err, HasSubstr("needs a server that was started with --processes N"));
    EXPECT_THAT(served.err, HasSubstr("needs a server that was started with --processes N"));

    const std::string second = free_port();
    process owner(program_path(tool), {"-p", second, "--processes", "2"});
    const outcome client = run_tool(tool, {"localhost", "-p", second, "-t", "tag_lat", "-s", "8"});
    const outcome owned  = owner.wait();
    EXPECT_EQ(1, client.status);
    EXPECT_EQ(1, owned.status);
    EXPECT_THAT(client.err, HasSubstr("this server waits for the processes of contended_fadd"));
    EXPECT_THAT(owned.err, HasSubstr("came for another test than contended_fadd"));
}

// The processes that this one has started.
std::vector<pid_t> children_of(pid_t parent)
{
    const std::string id = std::to_string(parent);
    std::ifstream list("/proc/" + id + "/task/" + id + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; list >> child;) {
        children.push_back(child);
    }
    return children;
}

// Kills one of the processes in the middle, with `command` started as a process.
void expect_death_is_named(process& command, pid_t owner)
{
    ASSERT_TRUE(command.wait_for_output("in flight each")) << command.out();
    const std::vector<pid_t> children = children_of(owner);
    ASSERT_EQ(4U, children.size());
    clockid_t clock;
    ASSERT_EQ(0, clock_getcpuclockid(children[2], &clock));
    const double before = processor_seconds(clock);
    ASSERT_TRUE(wait_until([&] { return processor_seconds(clock) > before + 0.02; }));
    ASSERT_EQ(0, ::kill(children[2], SIGKILL));
    const outcome result = command.wait(20s);
    EXPECT_EQ(1, result.status);
    EXPECT_FALSE(result.timed_out);
    const std::string name = "process 2 (pid " + std::to_string(children[2]) + ")";
    EXPECT_THAT(result.err, HasSubstr(name + " was ended by signal 9"));
    EXPECT_EQ(std::string::npos, result.err.find("backtrace")) << result.err;
    EXPECT_EQ(std::string::npos, result.out.find("final value")) << result.out;
}

const strings endless{"--self", "-t", "contended_fadd", "--processes", "4", "--time", "300"};

TEST(contended_fadd, a_killed_process_is_named_and_ends_the_others)
{
    process command(program_path(tool), endless);
    expect_death_is_named(command, command.pid());
}

#ifdef SOFTHCA_LIBRARY
// Memory of the software device, which UCX hands out over one transport.
class perftest_on_a_device : public testing::Test
{
protected:
    // What a process adds to find out what the device can do, before it allocates memory there.
    static constexpr std::uint64_t self_test = 7;

    static environment variables()
    {
        // UCX uses some of the device's memory itself, unless told not to. It also takes some for a moment to see
        // whether there is any.
        environment chosen{{"UCX_TLS", "rc_x"}, {"UCX_IB_DM_COUNT", "0"}};
        if (const char* const sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY")) {
            chosen.emplace_back("LD_PRELOAD", sanitizer);
        }
        return chosen;
    }
    static strings under_device(const strings& arguments, const strings& options = {})
    {
        return options + strings{"--", program_path(tool)} + arguments;
    }
    static outcome run(const strings& arguments, const strings& options = {})
    {
        return run_tool("softhca-run", under_device(arguments, options), variables());
    }
    // What the device did of an operation; how often it read, which only verifying its memory does here; and how much
    // of its memory was used.
    struct counts {
        std::uint64_t operations;
        std::uint64_t reads;
        std::uint64_t memory_used;
    };
    static counts run_and_count(const strings& arguments, const char* operation)
    {
        const std::string path = testing::TempDir() + "perftest_counts_" + std::to_string(getpid());
        const outcome result   = run(arguments, {"--stats", path});
        EXPECT_EQ(0, result.status) << result.err << result.out;
        std::ifstream file(path);
        const json found = json::parse(file);
        std::filesystem::remove(path);
        const json& requests = found.at("wqes");
        const auto count_of  = [&](const char* name) {
            return requests.contains(name) ? requests.at(name).at("count").get<std::uint64_t>() : 0;
        };
        return {.operations  = count_of(operation),
                .reads       = count_of("rdma_read"),
                .memory_used = found.at("memic_used_max").get<std::uint64_t>()};
    }
};

// UCX makes a key for atomic operations on plain memory. Its number could be read as that of a window.
TEST_F(perftest_on_a_device, keys_of_high_numbers_are_no_marks_of_windows)
{
    environment verbose = variables();
    verbose.emplace_back("UCX_LOG_LEVEL", "debug");
    const strings arguments{"--self", "-t", "ucp_fadd", "--method", "contig", "-s", "8", "-n", "1000", "--validate"};
    const outcome ended = run_tool("softhca-run", under_device(arguments, {"--profile", "none,high_keys=1"}), verbose);
    EXPECT_EQ(0, ended.status) << ended.err;
    EXPECT_THAT(ended.output(), HasSubstr("an atomic key with a high index is not handed out"));
    EXPECT_THAT(ended.output(), HasSubstr("final values right"));
}

// Registrations of memory that was unmapped since would be found again.
TEST_F(perftest_on_a_device, windows_without_memory_events_say_why_they_have_no_keys)
{
    for (const auto& [name, value] : {std::pair("UCX_MEM_EVENTS", "n"), std::pair("UCX_MEM_MMAP_HOOK_MODE", "none")}) {
        environment chosen{{"UCX_TLS", "rc_x,lay_copy"}, {"UCX_LOG_LEVEL", "diag"}, {name, value}};
        if (const char* const sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY")) {
            chosen.emplace_back("LD_PRELOAD", sanitizer);
        }
        const strings arguments{"--self", "-t", "tag_lat", "-l", "strided(64,64,128)", "-n", "10", "--validate"};
        const outcome ended = run_tool("softhca-run", under_device(arguments), chosen);
        EXPECT_EQ(0, ended.status) << ended.err;
        EXPECT_THAT(ended.output(), HasSubstr("windows get no hardware keys: UCX does not see when memory is unmapped"))
            << name;
        EXPECT_THAT(ended.output(), HasSubstr("verified"));
    }
}

class atomics_on_a_device : public perftest_on_a_device,
                            public testing::WithParamInterface<std::tuple<const char*, const char*>>
{
};

TEST_P(atomics_on_a_device, are_done_by_it_in_its_memory)
{
    const auto& [test, bytes] = GetParam();
    const bool is_masked      = std::string(test) == "ucp_swap" || std::string(bytes) == "4";
    const char* const request = std::string(test) == "ucp_cswap"  ? (is_masked ? "atomic_masked_cs" : "atomic_cs")
                                : std::string(test) == "ucp_swap" ? "atomic_masked_cs"
                                : is_masked                       ? "atomic_masked_fa"
                                                                  : "atomic_fa";
    const counts found =
        run_and_count(strings{"--self", "-t", test, "-s", bytes, "-m", "host,rdma", "-O", "16"} + short_run, request);
    EXPECT_EQ(2050U + (std::string(request) == "atomic_fa" ? 2 * self_test : 0), found.operations);
    EXPECT_EQ(3U, found.reads); // after the warm-up and two rounds
}

INSTANTIATE_TEST_SUITE_P(all, atomics_on_a_device,
                         testing::Combine(testing::Values("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"),
                                          testing::Values("4", "8")),
                         [](const testing::TestParamInfo<std::tuple<const char*, const char*>>& each) {
                             return std::string(std::get<0>(each.param)) + "_" + std::get<1>(each.param);
                         });

TEST_F(perftest_on_a_device, puts_and_gets_of_its_memory_are_checked_byte_by_byte)
{
    for (const char* const test : {"ucp_put_bw", "ucp_get"}) {
        const outcome result =
            run(strings{"--self", "-t", test, "-s", "8,4096", "-m", "host,rdma", "--validate", "--json"} + short_run);
        ASSERT_EQ(0, result.status) << test << result.err << result.out;
        const json runs = json::parse(result.out).at("runs");
        ASSERT_EQ(2U, runs.size());
        for (const json& each : runs) {
            EXPECT_EQ("host", each.at("local_memory"));
            EXPECT_EQ("rdma", each.at("remote_memory"));
            EXPECT_EQ("contig", each.at("results").at(0).at("method"));
            EXPECT_EQ(3, each.at("results").at(0).at("validated_messages"));
        }
    }
}

TEST_F(perftest_on_a_device, memory_of_type_rdma_is_that_of_the_device)
{
    const strings put = strings{"--self", "-t", "ucp_put_bw", "-s", "32K", "--method", "contig"} + short_run;
    EXPECT_LT(run_and_count(put, "rdma_write").memory_used, 32768U);
    EXPECT_GE(run_and_count(put + strings{"-m", "host,rdma"}, "rdma_write").memory_used, 32768U);
}

TEST_F(perftest_on_a_device, contended_fadd_in_its_memory)
{
    const outcome result =
        run({"--self", "-t", "contended_fadd", "-m", "rdma", "--processes", "4", "-n", "1000", "-O", "4"});
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_EQ("final value 4000 of 4000: right", last_line(result.out));
    const counts found =
        run_and_count({"--self", "-t", "contended_fadd", "-m", "rdma", "--processes", "3", "-n", "500"}, "atomic_fa");
    EXPECT_EQ(1500U + self_test, found.operations);
    EXPECT_EQ(1U, found.reads);
}

TEST_F(perftest_on_a_device, contended_fadd_in_host_memory)
{
    const counts found =
        run_and_count({"--self", "-t", "contended_fadd", "--processes", "3", "-n", "500"}, "atomic_fa");
    EXPECT_EQ(1500U, found.operations);
    EXPECT_EQ(0U, found.reads);
}

TEST_F(perftest_on_a_device, a_killed_process_is_named_and_ends_the_others)
{
    process command(program_path("softhca-run"), under_device(endless + strings{"-m", "rdma"}),
                    {.variables = variables()});
    ASSERT_TRUE(command.wait_for_output("in flight each")) << command.out();
    const std::vector<pid_t> started = children_of(command.pid());
    ASSERT_EQ(1U, started.size());
    expect_death_is_named(command, started.front());
}
#endif

} // namespace

} // namespace ucxl::test
