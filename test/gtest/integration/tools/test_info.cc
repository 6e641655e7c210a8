// ucx_layout_info as a user meets it.
#include "tool.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace ucxl::test
{

namespace
{

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* tool = "ucx_layout_info";

class temporary_file
{
public:
    explicit temporary_file(const std::string& content)
        : _path(std::filesystem::temp_directory_path() / ("ucxl_test_" + std::to_string(getpid()) + ".json"))
    {
        std::ofstream(_path) << content;
    }
    ~temporary_file() { std::filesystem::remove(_path); }
    temporary_file(const temporary_file&)            = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    std::string argument() const { return "@" + _path.string(); }
    std::string path() const { return _path; }

private:
    std::filesystem::path _path;
};

json explain(const std::string& layout, const std::vector<std::string>& more = {})
{
    std::vector<std::string> arguments{layout, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const outcome result = run_tool(tool, arguments);
    EXPECT_EQ(0, result.status) << result.err;
    return result.status == 0 ? json::parse(result.out) : json::object();
}

TEST(info, matrix_column)
{
    const json column = explain("strided(1024,8,8192)", {"--blocks", "2"});
    EXPECT_EQ(8192, column.at("packed_length"));
    EXPECT_EQ(1023 * 8192 + 8, column.at("extent"));
    EXPECT_EQ(1024, column.at("num_blocks"));
    EXPECT_EQ(8, column.at("min_block_length"));
    EXPECT_EQ("none", column.at("overlap"));
    EXPECT_EQ(1, column.at("depth"));
    EXPECT_EQ(json::parse(R"([{"source":0,"offset":0,"length":8},{"source":0,"offset":8192,"length":8}])"),
              column.at("blocks"));
}

TEST(info, text_names_everything)
{
    const outcome result = run_tool(tool, {"iov(1:8@16,8@0)", "--blocks", "5"});
    ASSERT_EQ(0, result.status) << result.err;
    for (const char* word : {"layout", "packed length  16", "sources        2", "source 1", "overlap", "serialized",
                             "hash", "normal form", "copied by", "first blocks"}) {
        EXPECT_THAT(result.out, HasSubstr(word));
    }
}

TEST(info, description_in_a_file_is_the_same_layout_as_its_text)
{
    const struct {
        const char* text;
        const char* description;
    } pairs[] = {
        {"contig(3,8)", R"({"kind": "contig", "element": 8, "count": 3})"},
        {"strided([4,5]x8,[1024,16])",
         R"({"kind": "strided", "element": 8, "dims": [{"count": 4, "stride": 1024}, {"count": 5, "stride": 16}]})"},
        {"strided(9,3,-7)", R"({"kind": "strided", "element": 3, "dims": [{"count": 9, "stride": -7}]})"},
        {"iov(8@0,1:16@64)", R"({"kind": "iov", "iov": [{"element": 8}, {"source": 1, "offset": 64, "element": 16}]})"},
        {"strided(5,iov(12@0,4@20),32)",
         R"({"kind": "strided", "dims": [{"count": 5, "stride": 32}],
             "element": {"kind": "iov", "iov": [{"element": 12}, {"element": 4, "offset": 20}]}})"},
        {"strided(5,iov(12@0,4@20),32)",
         R"j({"kind": "strided", "dims": [{"count": 5, "stride": 32}], "element": "iov(12@0,4@20)"})j"},
        {"interleaved(0:3*4@0,9,4;1:2*4@8,6,8)",
         R"({"kind": "interleaved", "interleaved": [
             {"source": 0, "repeat": 3, "element": 4, "dims": [{"count": 9, "stride": 4}]},
             {"source": 1, "repeat": 2, "element": 4, "offset": 8, "dims": [{"count": 6, "stride": 8}]}]})"},
        {"resized(8,0,64)", R"({"kind": "contig", "element": 8, "lb": 0, "extent": 64})"},
    };
    for (const auto& pair : pairs) {
        const temporary_file file(pair.description);
        EXPECT_EQ(explain(pair.text), explain(file.argument())) << pair.text;
    }
}

TEST(info, wrong_description_says_where)
{
    const struct {
        const char* description;
        const char* message;
    } pairs[] = {
        {"[1, 2]", "an object is expected"},
        {R"({"kind": "strided")", "parse error"},
        {R"({"kind": "spiral", "element": 8})", "kind: one of"},
        {R"({"element": 8})", "\"kind\" is missing"},
        {R"({"kind": "contig"})", "\"element\" is missing"},
        {R"({"kind": "contig", "element": 8, "cuont": 3})", "unknown name \"cuont\""},
        {R"({"kind": "contig", "element": -8})", "element: an integer from 0"},
        {R"({"kind": "contig", "element": 1.5})", "element: an integer from 0"},
        {R"({"kind": "contig", "element": 99999999999999999999})", "element: an integer from 0"},
        {R"({"kind": "contig", "element": 1e999})", ".json: number overflow"},
        {R"({"kind": "contig", "element": "strided("})", "element: "},
        {R"({"kind": "strided", "element": 8, "dims": 3})", "dims: a list is expected"},
        {R"({"kind": "strided", "element": 8, "dims": [{"count": 3}]})", "dims[0]: \"stride\" is missing"},
        {R"({"kind": "iov", "iov": [{"element": 8}, {"element": {"kind": 3}}]})", "iov[1].element.kind: one of"},
        {R"({"kind": "contig", "element": 8, "lb": 4})", "\"extent\" is missing"},
    };
    for (const auto& pair : pairs) {
        const temporary_file file(pair.description);
        const outcome result = run_tool(tool, {file.argument()});
        EXPECT_EQ(1, result.status) << pair.description;
        EXPECT_THAT(result.err, HasSubstr(pair.message));
        EXPECT_EQ("", result.out);
    }
}

TEST(info, description_nested_without_end_is_refused)
{
    std::string text;
    for (int i = 0; i < 100000; ++i) {
        text += R"({"kind":"contig","element":)";
    }
    text += '8' + std::string(100000, '}');
    const temporary_file file(text);
    const outcome result = run_tool(tool, {file.argument()});
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("more than 64 layouts nested"));
}

TEST(info, bad_text_names_the_column_and_prints_nothing)
{
    const outcome result = run_tool(tool, {"strided(4,8,)"});
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("column"));
    EXPECT_EQ("", result.out);
}

TEST(info, missing_file_is_named)
{
    const outcome result = run_tool(tool, {"@/nonexistent/layout.json"});
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("/nonexistent/layout.json: No such file"));
}

TEST(info, serialized_in_a_file_and_in_hexadecimal_are_the_same)
{
    const temporary_file file("");
    ASSERT_EQ(0, run_tool(tool, {"strided(4,8,16)", "--serialize", file.path()}).status);
    std::ifstream stream(file.path(), std::ios::binary);
    std::string hex;
    for (char byte = 0; stream.get(byte);) {
        std::array<char, 3> digits{};
        std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
        hex += digits.data();
    }
    const outcome result = run_tool(tool, {"strided(4,8,16)", "--serialize", "hex"});
    EXPECT_EQ(hex + "\n", result.out);
    EXPECT_EQ(2 * explain("strided(4,8,16)").at("serialized_length").get<std::size_t>(), hex.size());
}

TEST(info, without_arguments_shows_its_usage)
{
    const outcome result = run_tool(tool, {});
    EXPECT_EQ(2, result.status);
    EXPECT_THAT(result.err, HasSubstr("usage: ucx_layout_info"));
    EXPECT_THAT(result.err, HasSubstr("examples:"));
}

TEST(info, shows_from_where_on_copies_go_past_the_caches)
{
    const auto shown = [](const char* layout, const char* least) {
        const outcome result = run_tool(tool, {layout}, {{"UCX_LAYOUT_STREAM_MIN", least}});
        EXPECT_EQ(0, result.status) << result.err;
        return result.out;
    };
    EXPECT_THAT(shown("strided(1024,1024,2048)", "64k"),
                HasSubstr("gathers of 65536 bytes and more go past the caches"));
    EXPECT_THAT(shown("strided(16384,4096,8192)", "inf"), Not(HasSubstr("past the caches")));
    EXPECT_THAT(shown("strided(16384,4096,8192)", "auto"), HasSubstr("packed length  67108864"));
}

TEST(info, a_wrong_option_of_the_library_is_named)
{
    const outcome result = run_tool(tool, {"8"}, {{"UCX_LAYOUT_MAP_CACHE_SIZE", "plenty"}});
    EXPECT_EQ(0, result.status);
    EXPECT_THAT(result.out + result.err, HasSubstr("UCX_LAYOUT_MAP_CACHE_SIZE is 'plenty', expected: "));
    EXPECT_THAT(result.out + result.err, HasSubstr("(default: 1024); the default is used"));
}

TEST(info, version_and_limits)
{
    EXPECT_THAT(run_tool(tool, {"--version"}).out, HasSubstr("ucx_layout_info 1."));
    EXPECT_THAT(run_tool(tool, {"--limits"}).out, HasSubstr("4194304"));
}

TEST(info, hooks_are_listed_with_their_state)
{
    const outcome all = run_tool(tool, {"--hooks"});
    EXPECT_EQ(0, all.status) << all.err;
    for (const char* const name : {"put", "get", "atomic", "reply", "offer"}) {
        EXPECT_THAT(all.out, HasSubstr(std::string(name) + "\n    state    in use\n"));
    }
    EXPECT_THAT(all.out, HasSubstr("ucp_am_handler_UCP_AM_ID_GET_REQ in /"));
    const outcome some = run_tool(tool, {"--hooks"}, {{"UCX_LAYOUT_HOOKS", "put,reply"}});
    EXPECT_EQ(0, some.status) << some.err;
    EXPECT_THAT(some.out, HasSubstr("put\n    state    in use\n"));
    EXPECT_THAT(some.out, HasSubstr("get\n    state    off, by UCX_LAYOUT_HOOKS\n"));
}

TEST(info, failures_of_a_process_without_the_library_are_an_error)
{
    const outcome init = run_tool(tool, {"--failures", "1"});
    EXPECT_EQ(1, init.status);
    EXPECT_THAT(init.err, HasSubstr("has not loaded this release of the library"));
    EXPECT_EQ(2, run_tool(tool, {"--failures", "-3"}).status);
    EXPECT_THAT(run_tool(tool, {"--process", "1"}).err, HasSubstr("has not loaded this release of the library"));
    EXPECT_EQ(2, run_tool(tool, {"--process", "-3"}).status);
    EXPECT_EQ(1, run_tool(tool, {"--failures", "999999999"}).status);
}

TEST(info, failures_of_a_process_with_the_library_are_counted)
{
    // A server that waits for its client.
    process other(program_path("ucx_layout_perftest"), {"-p", free_port()});
    outcome result{};
    for (int turn = 0; turn < 200 && (result = run_tool(tool, {"--failures", std::to_string(other.pid())})).status != 0;
         ++turn) { // until it has loaded the library
    }
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_THAT(result.out, HasSubstr("puts by peers                           0            0\n"));
    const outcome process = run_tool(tool, {"--process", std::to_string(other.pid())});
    EXPECT_EQ(0, process.status) << process.err;
    EXPECT_THAT(process.out, HasSubstr("windows copied by the CPU               0\n"));
    EXPECT_THAT(process.out, HasSubstr("\nregions                                 0\n"));
    EXPECT_THAT(process.out, HasSubstr("puts by peers                           0            0\n"));
    other.kill(SIGTERM);
}

} // namespace

} // namespace ucxl::test
