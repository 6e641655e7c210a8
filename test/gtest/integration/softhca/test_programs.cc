// Real programs under the real softhca-run.
#include "softhca/core/arena/arena.h"
#include "support/wait_until.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace ucxl::softhca
{
namespace
{

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using strings = std::vector<std::string>;
namespace fs  = std::filesystem;

constexpr const char* runner    = SOFTHCA_BUILD "/softhca-run";
constexpr const char* scenarios = SOFTHCA_BUILD "/softhca_scenarios";

struct outcome {
    int status; // exit status, 128 + signal
    std::string output;
};

outcome run_line(const std::string& line)
{
    outcome found{.status = -1, .output = {}};
    FILE* const pipe = ::popen((line + " 2>&1").c_str(), "r");
    std::array<char, 4096> text;
    while (const std::size_t length = std::fread(text.data(), 1, text.size(), pipe)) {
        found.output.append(text.data(), length);
    }
    const int status = ::pclose(pipe);
    found.status     = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return found;
}

outcome run(const strings& options, const strings& command, const char* variables = "")
{
    std::string line = std::string(variables) + " " + runner;
    for (const std::string& each : options) {
        line += " '" + each + "'";
    }
    line += " --";
    for (const std::string& each : command) {
        line += " '" + each + "'";
    }
    return run_line(line);
}

outcome run_scenario(const strings& command, const strings& options = {})
{
    strings whole{scenarios};
    whole.insert(whole.end(), command.begin(), command.end());
    return run(options, whole);
}

class temporary_file
{
public:
    temporary_file() : _path(fs::temp_directory_path() / ("softhca-test-" + std::to_string(::getpid()))) {}
    ~temporary_file() { fs::remove(_path); }
    std::string path() const { return _path; }
    std::string text() const
    {
        std::stringstream all;
        all << std::ifstream(_path).rdbuf();
        return all.str();
    }

private:
    fs::path _path;
};

class scenario : public ::testing::TestWithParam<const char*>
{
};

TEST_P(scenario, goes_well)
{
    const outcome found = run_scenario({GetParam()});
    EXPECT_EQ(found.status, 0) << found.output;
    EXPECT_THAT(found.output, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    programs, scenario,
    ::testing::Values("loopback", "completion_events", "fork_child_inherits_nothing", "fork_child_makes_its_own",
                      "fork_child_closes_descriptors", "closes_descriptors_after_a_failed_exec", "cancelled_thread",
                      "exit_with_opening_threads", "outlives_its_main_thread", "clock_of_completions",
                      "fork_child_opens_anew", "vfork_and_spawn", "execute_another_program", "exit_with_busy_threads",
                      "exit_without_closing", "close_all_descriptors", "blocked_signals_and_direct_doorbells",
                      "handler_that_posts", "local_libraries", "unread_events",
                      "events_that_wait_for_their_acknowledgement", "unread_completion_events", "unread_limit_events",
                      "unread_events_behind_closed_descriptors", "events_read_by_threads", "completion_queue_overrun",
                      "queue_pair_events", "path_migration_is_refused", "initiator_outlives_targets"),
    [](const auto& each) { return std::string(each.param); });

TEST(programs, a_fault_handler_of_a_program_gets_its_own_faults_only)
{
    EXPECT_EQ(run_scenario({"own_fault_handler", "0"}).status, 42);
    EXPECT_EQ(run_scenario({"own_fault_handler", "1"}).status, 42);
}

TEST(programs, peers_of_killed_processes_get_errors_and_nothing_hangs)
{
    const outcome found = run_scenario({"killed_peers", "25"});
    EXPECT_EQ(found.status, 0) << found.output;
}

nlohmann::json statistics_of(const strings& command, int status = 0)
{
    const temporary_file file;
    const outcome found = run_scenario(command, {"--stats", file.path()});
    EXPECT_EQ(found.status, status) << found.output;
    return nlohmann::json::parse(file.text());
}

TEST(programs, whatever_a_process_leaves_is_released_at_its_end)
{
    for (const char* each : {"loopback", "exit_without_closing", "execute_another_program", "exit_with_busy_threads"}) {
        const auto counts = statistics_of({each});
        EXPECT_EQ(counts["keys_live"], 0) << each;
        EXPECT_EQ(counts["clients_lost"], 0) << each;
        EXPECT_EQ(counts["keys_left"] == 0, std::string(each) == "loopback") << each;
    }
}

TEST(programs, a_killed_process_is_counted_though_nobody_missed_it)
{
    EXPECT_EQ(statistics_of({"killed"}, 128 + SIGKILL)["clients_lost"], 1);
}

TEST(programs, statistics_count_what_was_done)
{
    const auto counts = statistics_of({"loopback"});
    EXPECT_EQ(counts["wqes"]["rdma_write"]["count"], 100);
    EXPECT_EQ(counts["wqes"]["rdma_write"]["failed"], 0);
    EXPECT_EQ(counts["completions"], 100);
    EXPECT_EQ(counts["bytes_moved"], 6400);
    EXPECT_EQ(counts["commands"]["create_qp"]["count"], 1);
    EXPECT_EQ(counts["doorbells"], 0); // without traps
}

TEST(programs, a_trace_has_commands_requests_and_completions_in_words)
{
    const temporary_file file;
    EXPECT_EQ(run_scenario({"loopback"}, {"--trace", file.path()}).status, 0);
    const std::string text = file.text();
    for (const char* each : {"create_qp", "rdma_write", "cqe requester", "destroy_mkey"}) {
        EXPECT_THAT(text, HasSubstr(each));
    }
}

TEST(programs, a_fault_that_was_asked_for_happens)
{
    const outcome key = run_scenario({"loopback"}, {"--fault", "command:create_mkey,status=limit_exceeded"});
    EXPECT_EQ(key.status, 1);
    EXPECT_THAT(key.output, HasSubstr("ibv_reg_mr"));
    const outcome wqe = run_scenario({"loopback"}, {"--fault", "wqe:rdma_write,first=3,syndrome=remote_access"});
    EXPECT_EQ(wqe.status, 1);
    EXPECT_THAT(wqe.output, HasSubstr("remote access error"));
}

struct met_fault {
    const char* fault;
    const char* scenario;
};

class device_fault : public ::testing::TestWithParam<met_fault>
{
};

TEST_P(device_fault, is_met_as_on_a_card)
{
    const outcome found = run_scenario({GetParam().scenario}, {"--fault", GetParam().fault});
    EXPECT_EQ(found.status, 0) << found.output;
    EXPECT_THAT(found.output, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(programs, device_fault,
                         ::testing::Values(met_fault{"port_down:rdma_write,first=2,time=40ms", "port_bounces"},
                                           met_fault{"port_down:rdma_write", "port_stays_down"},
                                           met_fault{"remove:rdma_write", "removed"},
                                           met_fault{"fatal:rdma_write,time=100ms", "firmware_recovers"}),
                         [](const auto& each) { return std::string(each.param.scenario); });

TEST(programs, sleep_until_the_port_goes_down_and_up_at_its_time)
{
    const outcome found = run_scenario({"port_watcher"}, {"--fault", "port_down,after=300ms,time=100ms"});
    EXPECT_EQ(found.status, 3) << found.output;
}

TEST(programs, see_the_counters_of_ports_in_files)
{
    const std::string folder = "/sys/class/infiniband/mlx5_0/ports/1/";
    const outcome found =
        run({}, {"sh", "-c",
                 std::string(scenarios) + " loopback; cd /; cat " + folder + "counters/port_xmit_packets " + folder +
                     "counters/port_xmit_data " + folder + "hw_counters/rx_write_requests"});
    // 100 writes of 64 bytes, each with headers of 40 bytes, and answers of 28.
    EXPECT_EQ(found.output, "200\n3300\n100\n");
}

TEST(softhca_run, changes_devices_that_programs_use)
{
    const std::string change = std::string(runner) + " --change ";
    const std::string port   = "/sys/class/infiniband/mlx5_0/ports/1/";
    const std::string script = "mkfifo $0; " + std::string(scenarios) + " port_watcher > $0 & read line < $0; " +
                               change + "port_down:mlx5_0; cat " + port + "state; env -u SOFTHCA_FABRIC " + change +
                               "port_up:mlx5_0,lid=0x20 --of $PPID; cat " + port + "lid; wait $!; echo $?; rm $0";
    const outcome found = run({}, {"sh", "-c", script, temporary_file().path()});
    EXPECT_EQ(found.output, "1: DOWN\n0x20\n4\n");
    const outcome later = run({}, {"sh", "-c",
                                   change + "remove; ls /sys/class/infiniband; " + change +
                                       "recover; ls /sys/class/infiniband; " + change + "fatal,time=1ms"});
    EXPECT_EQ(later.output, "mlx5_0\n");
    EXPECT_EQ(later.status, 0);
}

TEST(softhca_run, says_why_it_changes_nothing)
{
    const std::pair<strings, const char*> wrong[] = {
        {{"--change", "explode"}, "'explode' is not port_down, port_up"},
        {{"--change", "port_down:eth0"}, "device: 'eth0' is not one of mlx5_0 to mlx5_31"},
        {{"--change", "port_up,time=1s"}, "'time=1s' is not a field of this change"},
        {{"--change", "port_down:mlx5_0"}, "--of PID is missing"},
        {{"--change", "port_down:mlx5_0", "--of", "1"}, "process 1 is no softhca-run"},
        {{"--of", "1"}, "--of requires --change"},
    };
    for (const auto& [options, message] : wrong) {
        std::string line = runner;
        for (const std::string& each : options) {
            line += " '" + each + "'";
        }
        const outcome found = run_line(line);
        EXPECT_EQ(found.status, 2) << message;
        EXPECT_THAT(found.output, HasSubstr(message));
    }
    const outcome missing = run({}, {runner, "--change", "port_down:mlx5_3"});
    EXPECT_EQ(missing.status, 2);
    EXPECT_THAT(missing.output, HasSubstr("there is no mlx5_3"));
}

TEST(softhca_run, passes_on_exit_status_and_signal)
{
    EXPECT_EQ(run({}, {"sh", "-c", "exit 7"}).status, 7);
    EXPECT_EQ(run({}, {"sh", "-c", "kill -TERM $$"}).status, 128 + SIGTERM);
    const outcome missing = run({}, {"/no/such/program"});
    EXPECT_EQ(missing.status, 127);
    EXPECT_THAT(missing.output, HasSubstr("/no/such/program: No such file"));
    EXPECT_EQ(run({}, {"/"}).status, 126);
}

TEST(softhca_run, passes_on_the_exit_status_though_its_parent_ignores_children)
{
    const char* const ignoring = "env --ignore-signal=CHLD";
    EXPECT_EQ(run({}, {"sh", "-c", "exit 7"}, ignoring).status, 7);
    const outcome found         = run({}, {"grep", "SigIgn", "/proc/self/status"}, ignoring);
    const std::uint64_t ignored = std::stoull(found.output.substr(found.output.find(':') + 1), nullptr, 16);
    EXPECT_NE(ignored & std::uint64_t{1} << (SIGCHLD - 1), 0u) << "the command does not ignore them: " << found.output;
}

TEST(softhca_run, passes_on_signals_that_it_gets)
{
    const outcome found =
        run({}, {"sh", "-c", "trap \"echo got it; exit 3\" TERM; kill -TERM $PPID; while :; do sleep 0.01; done"});
    EXPECT_EQ(found.status, 3);
    EXPECT_EQ(found.output, "got it\n");
}

TEST(softhca_run, tells_the_seed_of_an_adversarial_order_when_the_command_fails)
{
    EXPECT_EQ(run_scenario({"loopback"}, {"--order", "adversarial"}).status, 0);
    const outcome failed = run({"--order", "adversarial"}, {"false"});
    EXPECT_EQ(failed.status, 1);
    EXPECT_THAT(failed.output, HasSubstr("the command failed with --order adversarial,seed="));
    EXPECT_EQ(run({"--order", "adversarial"}, {"true"}).output, "");
    EXPECT_EQ(run({}, {"false"}).output, "");
}

TEST(softhca_run, shows_the_network_interface_of_the_port)
{
    const std::string file = "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0";
    EXPECT_EQ(run({"--netdev", "eth0"}, {"cat", file}).output, "eth0\n");
    EXPECT_EQ(run({}, {"cat", file}).status, 1);
}

TEST(softhca_run, refuses_what_it_does_not_know_by_name)
{
    const std::pair<strings, const char*> wrong[] = {
        {{"--devices", "9"}, "devices: 9 is not between 1 and 8"},
        {{"--devices", "two"}, "devices: 'two'"},
        {{"--devices", "4", "--functions", "9"}, "functions: 9 per device is not between 1 and 8"},
        {{"--profile", "cx99"}, "profile: 'cx99'"},
        {{"--profile", "cx7,imaicl=2"}, "profile: 'imaicl=2'"},
        {{"--times", "cx99"}, "times: 'cx99'"},
        {{"--order", "random"}, "order: 'random'"},
        {{"--netdev", "sixteen_bytes_ab"}, "netdev: 'sixteen_bytes_ab' is no name of a network interface"},
        {{"--netdev", "eth0:1"}, "netdev: 'eth0:1' is no name of a network interface"},
        {{"--fault", "wqe:frob"}, "fault 'wqe:frob': opcode"},
        {{"--frobnicate"}, "--frobnicate"},
        {{"--stats", "/no/such/folder/file"}, "--stats /no/such/folder/file: No such file"},
    };
    for (const auto& [options, message] : wrong) {
        const outcome found = run(options, {"true"});
        EXPECT_EQ(found.status, 2) << message;
        EXPECT_THAT(found.output, HasSubstr(message));
    }
    EXPECT_EQ(run({}, {"true"}, "SOFTHCA_DEVICES=0").status, 2);
    EXPECT_EQ(run({}, {"true"}, "SOFTHCA_LIBRARY=/no/such/library").status, 2);
}

TEST(softhca_run, fails_if_its_report_cannot_be_written)
{
    const outcome full = run({"--stats", "/dev/full"}, {"true"});
    EXPECT_EQ(full.status, 2);
    EXPECT_THAT(full.output, HasSubstr("--stats /dev/full: No space left on device"));
    EXPECT_EQ(run({"--stats", "/dev/full"}, {"sh", "-c", "exit 3"}).status, 3);
}

TEST(softhca_run, has_as_many_devices_as_asked_for)
{
    const outcome found = run({"--devices", "2", "--functions", "2"}, {"ls", "/sys/class/infiniband"});
    EXPECT_EQ(found.output, "mlx5_0\nmlx5_1\nmlx5_2\nmlx5_3\n");
    EXPECT_EQ(run({"--devices", "1"}, {"ls", "/sys/class/infiniband"}, "SOFTHCA_DEVICES=3").output, "mlx5_0\n");
    EXPECT_EQ(run({}, {"ls", "/sys/class/infiniband"}, "SOFTHCA_DEVICES=2").output, "mlx5_0\nmlx5_1\n");
}

// All names in the folders where such files would be.
std::set<std::string> left_behind()
{
    std::set<std::string> names;
    for (const char* folder : {"/dev/shm", "/tmp", "/var/tmp", "."}) {
        for (const auto& entry : fs::directory_iterator(folder, fs::directory_options::skip_permission_denied)) {
            if (entry.path().filename().string().find("softhca") != std::string::npos) {
                names.insert(entry.path());
            }
        }
    }
    return names;
}

TEST(softhca_run, leaves_no_file_behind_even_when_all_is_killed)
{
    const auto before = left_behind();
    EXPECT_EQ(run_scenario({"killed", "1"}).status, 128 + SIGKILL);
    run_scenario({"loopback"});
    std::set<std::string> left;
    std::ranges::set_difference(left_behind(), before, std::inserter(left, left.end()));
    // Those of other builds, which may run tests here too, go away by themselves.
    EXPECT_TRUE(ucxl::test::wait_until([&] {
        std::erase_if(left, [](const std::string& name) { return !fs::exists(name); });
        return left.empty();
    })) << testing::PrintToString(left);
}

TEST(softhca_run, a_program_without_it_has_a_device_of_its_own)
{
    const std::string line = std::string("LD_PRELOAD=" SOFTHCA_BUILD "/.libs/libsofthca.so SOFTHCA_FUNCTIONS=2 ") +
                             scenarios + " fork_child_opens_anew";
    EXPECT_EQ(std::system(line.c_str()), 0);
}

} // namespace
} // namespace ucxl::softhca
