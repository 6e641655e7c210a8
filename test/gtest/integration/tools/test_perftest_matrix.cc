// Every test with every method, between two processes, over several transports, with what arrives checked byte by byte.
#include "tool.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

namespace ucxl::test
{

namespace
{

using nlohmann::json;
using string_set = std::set<std::string>;

string_set names_in(const json& list)
{
    string_set names;
    for (const json& item : list) {
        names.insert(item.at("method").get<std::string>());
    }
    return names;
}

// (test, UCX_TLS; empty for the default)
using matrix_case = std::tuple<std::string, std::string>;

class perftest_matrix : public testing::TestWithParam<matrix_case>
{
protected:
    static environment variables()
    {
        const std::string& tls = std::get<1>(GetParam());
        return tls.empty() ? environment{} : environment{{"UCX_TLS", tls}};
    }

    // Eager and rendezvous; the largest one on the default transports only, to save time.
    static std::string sizes() { return std::get<1>(GetParam()).empty() ? "64,64K,1M" : "64,256K"; }
    static std::size_t num_sizes() { return std::get<1>(GetParam()).empty() ? 3 : 2; }

    static std::string test_name() { return std::get<0>(GetParam()); }

    // Different layouts at both ends, of 64 bytes each, repeated to an eager and a rendezvous message.
    static outcome run(const std::vector<std::string>& more)
    {
        std::vector<std::string> arguments{
            "--self", "-t",       test_name(), "-l",    "resized(strided(8,8,24),0,200),strided(4,16,40)",
            "-s",     sizes(),    "-n",        "5",     "-w",
            "2",      "--rounds", "2",         "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_tool("ucx_layout_perftest", arguments, variables());
    }
};

TEST_P(perftest_matrix, every_possible_method_delivers_the_right_bytes_and_no_others)
{
    const outcome result = run({"--method", "all", "--validate"});
    ASSERT_EQ(0, result.status) << result.err << result.out;
    EXPECT_EQ("", result.err);
    const json document  = json::parse(result.out);
    const bool one_sided = test_name().starts_with("ucp_");
    ASSERT_EQ(num_sizes(), document.at("runs").size());
    for (const json& each : document.at("runs")) {
        EXPECT_EQ(one_sided ? (string_set{"window", "pack", "contig"})
                            : (string_set{"window", "datatype", "pack", "iov", "contig"}),
                  names_in(each.at("results")));
        EXPECT_EQ(one_sided ? (string_set{"datatype", "iov"}) : string_set{}, names_in(each.at("skipped")));
        for (const json& row : each.at("results")) {
            EXPECT_EQ(5, row.at("iterations"));
            EXPECT_EQ(2, row.at("rounds"));
            EXPECT_EQ(3, row.at("validated_messages"));
            EXPECT_GT(row.at("median_us").get<double>(), 0);
            // Over these transports nobody but the CPU moves the bytes of windows.
            const bool is_window = row.at("method") == "window";
            EXPECT_EQ(is_window, row.contains("copied_bytes"));
            EXPECT_GT(row.value("copied_bytes", is_window ? 0 : 1), 0) << row;
        }
        EXPECT_EQ(1.0, each.at("results").at(0).at("speed_against_first"));
    }
}

INSTANTIATE_TEST_SUITE_P(all, perftest_matrix,
                         testing::Combine(testing::Values("tag_lat", "tag_bw", "am_lat", "am_bw", "stream_lat",
                                                          "stream_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get"),
                                          testing::Values("", "posix,lay_copy", "tcp,lay_copy")),
                         [](const testing::TestParamInfo<matrix_case>& each) {
                             const std::string& tls = std::get<1>(each.param);
                             return std::get<0>(each.param) + "_" + tls.substr(0, tls.find(',')) +
                                    (tls.empty() ? "default" : "");
                         });

class perftest_variants : public testing::TestWithParam<std::vector<std::string>>
{
};

TEST_P(perftest_variants, verifies_too)
{
    std::vector<std::string> arguments{"--self", "-n", "20", "-w", "2", "--rounds", "3", "--validate", "--json"};
    arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
    const outcome result = run_tool("ucx_layout_perftest", arguments);
    ASSERT_EQ(0, result.status) << result.err << result.out;
    const json document = json::parse(result.out);
    // Of messages one in each round, of atomic operations each, also those before measuring.
    const int verified = GetParam().at(1) == "ucp_fadd" ? 20 + 2 : 3;
    for (const json& row : document.at("runs").at(0).at("results")) {
        EXPECT_EQ(verified, row.at("validated_messages"));
    }
}

constexpr const char* three_sources = "interleaved(0:3*4@0,300,4;1:3*4@0,300,8;2:2*4@0,200,4)";

INSTANTIATE_TEST_SUITE_P(
    all, perftest_variants,
    testing::Values(
        std::vector<std::string>{"-t", "tag_lat", "--method", "all", "-l", three_sources},
        std::vector<std::string>{"-t", "am_bw", "--method", "all", "-l", three_sources, "-O", "3"},
        std::vector<std::string>{"-t", "ucp_put_bw", "--method", "pack,window", "-l", three_sources, "-O", "1"},
        std::vector<std::string>{"-t", "tag_bw", "--method", "all", "-l", "iov(500,1..99,seed=3,shuffle)", "-z"},
        std::vector<std::string>{"-t", "ucp_get", "--method", "pack,window", "-l", "strided(99,3,-7)", "-O", "7"},
        std::vector<std::string>{"-t", "ucp_put_lat", "--method", "window,pack", "-l", "strided(512,64,128)",
                                 "--allocate"},
        std::vector<std::string>{"-t", "ucp_get", "--method", "window,pack", "-l", three_sources, "-m", "region"},
        std::vector<std::string>{"-t", "tag_lat", "--method", "all", "-l", "strided(512,64,128)", "-m", "app,region"},
        std::vector<std::string>{"-t", "ucp_fadd", "-s", "8", "-m", "host,region"},
        std::vector<std::string>{"-t", "tag_lat", "--method", "all", "-l", three_sources, "--live"},
        std::vector<std::string>{"-t", "am_lat", "--method", "all", "-l", "strided(64,8,32)", "--live"},
        std::vector<std::string>{"-t", "ucp_put_lat", "--method", "window,pack", "-l", "strided(512,64,128)", "--live"},
        std::vector<std::string>{"-t", "stream_lat", "--method", "all", "-s", "1"}));

TEST(perftest_memory, of_a_heap_needs_the_heap)
{
    const outcome result =
        run_tool("ucx_layout_perftest", {"--self", "-t", "tag_lat", "-l", "strided(64,8,32)", "-m", "heap"});
    EXPECT_NE(0, result.status);
    EXPECT_NE(result.err.find("LD_PRELOAD=libucx_layout_heap.so"), std::string::npos) << result.err;
}

TEST(perftest_mem_map, reports_every_operation)
{
    const outcome result =
        run_tool("ucx_layout_perftest", {"--self", "-t", "mem_map", "-l", "strided(64,8,32)", "-n", "21", "--json"});
    ASSERT_EQ(0, result.status) << result.err << result.out;
    const json document = json::parse(result.out);
    for (const json& row : document.at("runs").at(0).at("results")) {
        EXPECT_EQ(21, row.at("iterations"));
        EXPECT_EQ(11, row.at("rounds"));
    }
    EXPECT_EQ((string_set{"fresh", "cached", "rebind", "ucp_mem_map"}),
              names_in(document.at("runs").at(0).at("results")));
}

} // namespace

} // namespace ucxl::test
