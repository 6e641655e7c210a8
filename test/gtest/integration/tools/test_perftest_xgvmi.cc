// Memory of a host that a DPU process uses: three processes on two functions of the software device.
#include "tool.h"

#include "support/wait_until.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

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

struct bad_xgvmi_line {
    strings arguments;
    const char* message;
};

class perftest_bad_xgvmi_options : public testing::TestWithParam<bad_xgvmi_line>
{
};

TEST_P(perftest_bad_xgvmi_options, are_named_and_end_with_status_2)
{
    const outcome result = run_tool(tool, GetParam().arguments);
    EXPECT_EQ(2, result.status) << result.out;
    EXPECT_THAT(result.err, HasSubstr(GetParam().message));
    EXPECT_EQ("", result.out);
}

INSTANTIATE_TEST_SUITE_P(
    all, perftest_bad_xgvmi_options,
    testing::Values(
        bad_xgvmi_line{{"localhost", "-t", "xgvmi_get", "-s", "8"}, "--owner: names the server that has the memory"},
        bad_xgvmi_line{{"--self", "-t", "xgvmi_get", "-s", "8", "--owner", "x"}, "--owner: --self starts"},
        bad_xgvmi_line{{"--self", "-t", "tag_lat", "-s", "8", "--owner", "x"}, "--owner: only xgvmi tests"},
        bad_xgvmi_line{{"--self", "-t", "tag_lat", "-s", "8", "--devices", "a,b"}, "--devices: only xgvmi tests"},
        bad_xgvmi_line{{"--self", "-t", "xgvmi_get", "-s", "8", "--devices", "a"},
                       "--devices: \"a\" is not two devices"},
        bad_xgvmi_line{{"--self", "-t", "xgvmi_put", "-s", "8", "--devices", "a,"}, "is not two devices"},
        bad_xgvmi_line{{"localhost", "-t", "xgvmi_put", "-s", "8", "--owner", "x", "--devices", "a,b"},
                       "--devices: only with --self"},
        bad_xgvmi_line{{"--self", "-t", "xgvmi_get", "-s", "8", "-m", "rdma,host"}, "-m: xgvmi tests are about memory"},
        bad_xgvmi_line{{"--self", "-t", "xgvmi_map", "-s", "8", "--method", "window,contig"},
                       "--method: xgvmi_map takes one method"}));

#ifdef SOFTHCA_LIBRARY
class xgvmi : public testing::Test
{
protected:
    static environment variables(const environment& more = {})
    {
        environment chosen = more;
        if (const char* const sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY")) {
            chosen.emplace_back("LD_PRELOAD", sanitizer);
        }
        return chosen;
    }
    static strings on_device(const strings& options, const strings& arguments)
    {
        return options + strings{"--", program_path(tool)} + arguments;
    }
    static outcome run(const strings& arguments, const strings& options = {"--functions", "2"})
    {
        return run_tool("softhca-run", on_device(options, arguments), variables());
    }
    // What the device did in a run that ends well.
    static json count(const strings& arguments, json* result = nullptr)
    {
        const std::string path = testing::TempDir() + "xgvmi_counts_" + std::to_string(getpid());
        const outcome ended    = run(arguments + strings{"--json"}, {"--functions", "2", "--stats", path});
        EXPECT_EQ(0, ended.status) << ended.err << ended.out;
        EXPECT_EQ("", ended.err);
        if (result != nullptr) {
            *result = json::parse(ended.out).at("runs");
        }
        std::ifstream file(path);
        json counts = json::parse(file);
        std::filesystem::remove(path);
        return counts;
    }
    static int commands(const json& counts, const char* name)
    {
        const json& all = counts.at("commands");
        return all.contains(name) ? all.at(name).at("count").get<int>() : 0;
    }
};

class xgvmi_transfers : public xgvmi, public testing::WithParamInterface<const char*>
{
};

TEST_P(xgvmi_transfers, are_work_requests_of_the_dpu_process_and_bring_every_byte)
{
    const strings line{"--self",
                       "-t",
                       GetParam(),
                       "-l",
                       "resized(64,0,128)",
                       "-s",
                       "64,4K,64K",
                       "--method",
                       "window,contig",
                       "-w",
                       "1",
                       "--rounds",
                       "2",
                       "-O",
                       "4",
                       "--validate"};
    json runs;
    const json few  = count(line + strings{"-n", "10"}, &runs);
    const json many = count(line + strings{"-n", "30"});
    ASSERT_EQ(3U, runs.size());
    for (const json& each : runs) {
        ASSERT_EQ(2U, each.at("results").size());
        for (const json& result : each.at("results")) {
            EXPECT_EQ(10, result.at("iterations"));
            EXPECT_EQ(3, result.at("validated_messages"));
            EXPECT_FALSE(result.contains("copied_bytes"));
        }
    }
    const char* const request = std::string(GetParam()) == "xgvmi_get" ? "rdma_read" : "rdma_write";
    const auto requests_in = [&](const json& counts) { return counts.at("wqes").at(request).at("count").get<int>(); };
    EXPECT_EQ(3 * 2 * (30 - 10), requests_in(many) - requests_in(few));
    EXPECT_EQ(0, many.at("keys_left"));
}

INSTANTIATE_TEST_SUITE_P(all, xgvmi_transfers, testing::Values("xgvmi_get", "xgvmi_put"));

TEST_F(xgvmi, methods_that_copy_are_refused_with_the_reason)
{
    const outcome one = run({"--self", "-t", "xgvmi_put", "-s", "4K", "--method", "pack"});
    EXPECT_EQ(1, one.status);
    EXPECT_THAT(one.err, HasSubstr("method pack: xgvmi_put uses the memory of the host where it is"));
    const outcome map = run({"--self", "-t", "xgvmi_map", "-s", "4K", "--method", "iov"});
    EXPECT_EQ(1, map.status);
    EXPECT_THAT(map.err, HasSubstr("method iov: xgvmi_map uses the memory of the host where it is"));
    const outcome all = run({"--self", "-t", "xgvmi_get", "-s", "4K", "--method", "all", "-n", "5"});
    EXPECT_EQ(0, all.status) << all.err;
    EXPECT_THAT(all.out, HasSubstr("datatype   not possible: xgvmi_get uses"));
}

TEST_F(xgvmi, map_shows_the_parts_of_host_and_dpu_and_makes_no_key_for_each_buffer)
{
    for (const char* const method : {"window", "contig"}) {
        const strings line{"--self",   "-t",   "xgvmi_map", "-l", "strided(64,64,192)",
                           "--method", method, "--rounds",  "2"};
        json runs;
        const json few  = count(line + strings{"-n", "21"}, &runs);
        const json many = count(line + strings{"-n", "60", "-w", "3"});
        std::map<std::string, double> median;
        for (const json& row : runs.at(0).at("results")) {
            EXPECT_EQ(21, row.at("iterations"));
            median[row.at("method")] = row.at("median_us");
        }
        for (const char* const side : {"host", "dpu"}) {
            for (const auto& [name, value] : median) {
                EXPECT_GT(value, 0) << name;
                EXPECT_LE(name.starts_with(side) ? value : 0, 1.5 * median.at(side)) << name;
            }
        }
        EXPECT_EQ(8U, median.size());
        for (const char* const name : {"allow_other_vhca_access", "create_general_object"}) {
            EXPECT_GT(commands(few, name), 0) << name;
            // How many keys wait at once to be used again depends on the load of the machine: up to the 16 spare ones.
            // A key for each of the 40 buffers more would be 40 keys and more.
            EXPECT_NEAR(commands(few, name), commands(many, name), 24) << method << " " << name;
        }
        EXPECT_EQ(0, many.at("keys_left"));
    }
}

TEST_F(xgvmi, a_missing_device_or_function_is_named_with_the_option)
{
    const strings get{"--self", "-t", "xgvmi_get", "-s", "4K", "-n", "5"};
    const outcome one = run(get, {});
    EXPECT_EQ(1, one.status);
    EXPECT_THAT(one.err, HasSubstr("--devices: there is no network device mlx5_1 here (there is: mlx5_0)"));
    EXPECT_THAT(one.err, HasSubstr("softhca-run --functions 2"));
    const outcome other = run(get + strings{"--devices", "mlx5_7,mlx5_1"});
    EXPECT_EQ(1, other.status);
    EXPECT_THAT(other.err, HasSubstr("--devices: there is no network device mlx5_7"));
    // Another device cannot use its keys.
    const outcome second = run(get, {"--devices", "2"});
    EXPECT_EQ(1, second.status);
    EXPECT_THAT(second.err, HasSubstr("needs another function of the same device, --devices"));
}

TEST_F(xgvmi, windows_without_keys_are_said_to_need_them)
{
    const outcome result =
        run_tool("softhca-run", on_device({"--functions", "2"}, {"--self", "-t", "xgvmi_get", "-s", "4K", "-n", "5"}),
                 variables({{"UCX_LAYOUT_KEYS_WINDOWS", "copies"}}));
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("for a window a hardware key"));
}

// The script gets the program and two ports.
TEST_F(xgvmi, processes_that_are_started_by_hand_find_each_other)
{
    const std::string host_port = free_port();
    const std::string peer_port = free_port();
    const char* const script    = "export UCX_TLS=rc_x,lay_copy; UCX_NET_DEVICES=mlx5_0:1 \"$0\" -p $1 & "
                                  "export UCX_NET_DEVICES=mlx5_1:1; \"$0\" -p $2 & "
                                  "\"$0\" 127.0.0.1 -p $2 --owner 127.0.0.1:$1 -t xgvmi_get -s 4K -n 50 --validate "
                                  "-f && wait -n && wait -n";
    const outcome result        = run_tool(
        "softhca-run", {"--functions", "2", "--", "/bin/bash", "-c", script, program_path(tool), host_port, peer_port},
        variables());
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_THAT(result.out, HasSubstr("1.00  verified"));
}

// A process of the test by its number: the host is started first, then the peer.
class xgvmi_deaths : public xgvmi, public testing::WithParamInterface<std::size_t>
{
protected:
    static std::vector<pid_t> children_of(pid_t parent)
    {
        const std::string id = std::to_string(parent);
        std::ifstream list("/proc/" + id + "/task/" + id + "/children");
        std::vector<pid_t> children;
        for (pid_t child = 0; list >> child;) {
            children.push_back(child);
        }
        return children;
    }
};

TEST_P(xgvmi_deaths, end_the_others_soon)
{
    process command(program_path("softhca-run"),
                    on_device({"--functions", "2"}, {"--self", "-t", "xgvmi_map", "-s", "4K", "-n", "100000000"}),
                    {.variables = variables()});
    ASSERT_TRUE(command.wait_for_output("Message size")) << command.out();
    const std::vector<pid_t> client = children_of(command.pid());
    ASSERT_EQ(1U, client.size());
    const std::vector<pid_t> others = children_of(client.front());
    ASSERT_EQ(2U, others.size());
    ASSERT_EQ(0, ::kill(others[GetParam()], SIGKILL));
    const outcome result = command.wait(20s);
    EXPECT_EQ(1, result.status);
    EXPECT_FALSE(result.timed_out);
    EXPECT_THAT(result.err, HasSubstr((GetParam() == 0 ? "the host process (pid " : "the server process (pid ") +
                                      std::to_string(others[GetParam()]) + ") was ended by signal 9"));
}

INSTANTIATE_TEST_SUITE_P(all, xgvmi_deaths, testing::Values(0U, 1U));
#endif

} // namespace

} // namespace ucxl::test
