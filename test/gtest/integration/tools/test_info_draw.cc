// ucx_layout_info --svg: the picture shows the blocks that the layout has, each where it belongs.
#include "tool.h"

#include "tools/info/draw.h"
#include "tools/info/svg.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace ucxl::test
{

namespace
{

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* tool = "ucx_layout_info";

// As numbers are printed.
constexpr double rounding = 0.011;

struct shape {
    double x = 0, right = 0;
    long source = 0, offset = 0, length = 0;
    std::string colour;
};

struct picture {
    std::string text;
    std::vector<shape> memory, window, legend;
    std::vector<std::string> bands; // their points
};

std::string attribute(const std::string& element, const std::string& name)
{
    std::smatch found;
    return std::regex_search(element, found, std::regex(" " + name + "=\"([^\"]*)\"")) ? found[1].str() : "";
}

long number(const std::string& element, const std::string& name)
{
    const std::string text = attribute(element, name);
    return text.empty() ? 0 : std::stol(text);
}

picture draw(const std::string& layout)
{
    const outcome result = run_tool(tool, {layout, "--svg", "-"});
    EXPECT_EQ(0, result.status) << result.err;
    picture drawn{.text = result.out, .memory = {}, .window = {}, .legend = {}, .bands = {}};
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
        const std::string kind = attribute(line, "class");
        if (line.starts_with("<polygon") && kind == "band") {
            drawn.bands.push_back(attribute(line, "points"));
        }
        if (!line.starts_with("<rect") || kind.empty()) {
            continue;
        }
        shape made{.x      = std::stod(attribute(line, "x")),
                   .right  = 0,
                   .source = number(line, "data-source"),
                   .offset = number(line, "data-offset"),
                   .length = number(line, "data-length"),
                   .colour = attribute(line, "fill")};
        made.right = made.x + std::stod(attribute(line, "width"));
        (kind == "memory" ? drawn.memory : kind == "window" ? drawn.window : drawn.legend).push_back(made);
        if (kind != "memory" && kind != "window" && kind != "legend") {
            drawn.legend.pop_back();
        }
    }
    return drawn;
}

json blocks_of(const std::string& layout)
{
    const outcome result = run_tool(tool, {layout, "--json", "--blocks", std::to_string(info::drawn_blocks)});
    EXPECT_EQ(0, result.status) << result.err;
    return result.status == 0 ? json::parse(result.out).at("blocks") : json::array();
}

// Bytes are where the numbers say: in the same order, and apart where they are not together.
void expect_in_order(const std::vector<shape>& memory)
{
    for (const shape& one : memory) {
        for (const shape& other : memory) {
            if (one.source == other.source) {
                EXPECT_EQ(one.offset < other.offset, one.x < other.x);
                EXPECT_EQ(one.offset + one.length < other.offset + other.length, one.right < other.right - rounding);
                EXPECT_EQ(one.offset + one.length <= other.offset, one.right <= other.x + rounding);
                EXPECT_EQ(one.offset + one.length < other.offset, one.right < other.x - rounding);
            }
        }
    }
}

void expect_drawn_as_it_is(const std::string& layout)
{
    SCOPED_TRACE(layout);
    const picture drawn = draw(layout);
    const json blocks   = blocks_of(layout);
    ASSERT_EQ(blocks.size(), drawn.memory.size());
    ASSERT_EQ(blocks.size(), drawn.window.size());
    ASSERT_EQ(blocks.size(), drawn.bands.size());
    long packed = 0;
    double end  = drawn.window.empty() ? 0 : drawn.window[0].x;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const shape &memory = drawn.memory[i], &window = drawn.window[i];
        EXPECT_EQ(blocks[i].at("source"), memory.source);
        EXPECT_EQ(blocks[i].at("offset"), memory.offset);
        EXPECT_EQ(blocks[i].at("length"), memory.length);
        EXPECT_EQ(packed, window.offset);
        EXPECT_EQ(memory.length, window.length);
        EXPECT_EQ(memory.colour, window.colour);
        EXPECT_NEAR(end, window.x, rounding);
        EXPECT_GT(memory.right, memory.x + 1);
        EXPECT_GE(memory.x, 0);
        EXPECT_LE(std::max(memory.right, window.right), 960);
        std::istringstream points(std::regex_replace(drawn.bands[i], std::regex(","), " "));
        double corners[8]{};
        for (double& corner : corners) {
            points >> corner;
        }
        EXPECT_NEAR(memory.x, corners[0], rounding);
        EXPECT_NEAR(memory.right, corners[2], rounding);
        EXPECT_NEAR(window.right, corners[4], 2 * rounding);
        EXPECT_NEAR(window.x, corners[6], rounding);
        packed += memory.length;
        end = window.right;
    }
    expect_in_order(drawn.memory);
}

TEST(info_draw, every_block_is_where_the_layout_has_it)
{
    for (const char* layout :
         {"8", "strided(8,8,64)", "strided(1024,8,8192)", "strided([128,128]x8,[131072,1024])", "strided(4,3,-7)",
          "strided([2,3]x5,[-1000000,9])", "iov(8@16,8@0,8@4)", "iov(8@0,8@0,8@0)", "strided(7,16,3)",
          "iov(4@0,4@4,1000000000@8,4@2000000000)", "strided(5,iov(12@0,4@20),32)", "iov(40,8..256,seed=1,shuffle)",
          "interleaved(3*4@0,30,4; 1:3*4@0,30,4; 2:2*4@0,20,4)", "iov(1:8@16,8@-8,3:1@1000000)",
          "strided(1000000,8,65536)"}) {
        expect_drawn_as_it_is(layout);
    }
}

TEST(info_draw, sources_differ_in_colour_and_are_in_the_legend)
{
    std::string layout = "iov(8@0";
    for (unsigned source = 1; source < info::drawn_sources; ++source) {
        layout += "," + std::to_string(source) + ":8@0";
    }
    const picture drawn = draw(layout + ")");
    std::set<std::string> colours;
    ASSERT_EQ(info::drawn_sources, drawn.memory.size());
    ASSERT_EQ(info::drawn_sources, drawn.legend.size());
    for (unsigned source = 0; source < info::drawn_sources; ++source) {
        colours.insert(drawn.memory[source].colour);
        EXPECT_EQ(drawn.memory[source].colour, drawn.legend[source].colour);
        EXPECT_EQ(source, drawn.legend[source].source);
        EXPECT_THAT(drawn.text, HasSubstr(">source " + std::to_string(source) + "<"));
    }
    EXPECT_EQ(info::drawn_sources, colours.size());
    EXPECT_THAT(drawn.text, Not(HasSubstr("have no row")));
}

TEST(info_draw, what_is_left_out_is_said)
{
    const picture many = draw("strided(1000000,8,65536)");
    EXPECT_EQ(info::drawn_blocks, many.memory.size());
    EXPECT_THAT(many.text, HasSubstr("Only the first 24 blocks are drawn; 999976 more follow, bytes 192 to 8000000 of "
                                     "the window."));
    EXPECT_THAT(many.text, HasSubstr("Two strokes mark what is longer than it is drawn."));
    EXPECT_THAT(many.text, HasSubstr("class=\"break\""));

    const picture few = draw("strided(8,8,16)");
    EXPECT_THAT(few.text, Not(HasSubstr("Only the first")));
    EXPECT_THAT(few.text, Not(HasSubstr("class=\"break\"")));

    const picture wide = draw("iov(8@0,9:8@0)");
    EXPECT_EQ(1U, wide.memory.size());
    EXPECT_EQ(2U, wide.window.size());
    EXPECT_THAT(wide.text, HasSubstr("Sources 8 to 9 have no row"));
    EXPECT_THAT(draw("contig(0,8)").text, HasSubstr("The layout has no bytes."));
}

TEST(info_draw, blocks_have_their_numbers)
{
    const std::string text = draw("iov(24@0,24@12,16@48,16@48)").text;
    for (const char* const numbers : {">0<", ">1<", ">2<", ">3<", ">2, 3<"}) {
        EXPECT_THAT(text, HasSubstr(numbers));
    }
}

TEST(info_draw, texts_are_escaped)
{
    EXPECT_EQ("a &lt;b&gt; &amp;c; &quot;d&quot; ??", info::escape_xml("a <b> &c; \"d\" \x01\xff"));
}

// A folder of its own.
class info_draw_file : public testing::Test
{
protected:
    info_draw_file() { std::filesystem::create_directory(_folder); }
    ~info_draw_file() override { std::filesystem::remove_all(_folder); }

    std::string path(const char* name) const { return _folder / name; }

    std::vector<std::string> files() const
    {
        std::vector<std::string> names;
        for (const auto& each : std::filesystem::directory_iterator(_folder)) {
            names.push_back(each.path().filename());
        }
        return names;
    }

    static std::string content(const std::string& path)
    {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }

private:
    std::filesystem::path _folder =
        std::filesystem::temp_directory_path() / ("ucxl_draw_" + std::to_string(getpid()) + ".d");
};

TEST_F(info_draw_file, has_what_standard_output_gets)
{
    const std::string layout = "strided(4,8,32)";
    const outcome result     = run_tool(tool, {layout, "--svg", path("a.svg")});
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_EQ("", result.out);
    EXPECT_EQ(draw(layout).text, content(path("a.svg")));
    std::filesystem::create_symlink("a.svg", path("link.svg"));
    EXPECT_EQ(0, run_tool(tool, {"8", "--svg", path("link.svg")}).status);
    EXPECT_TRUE(std::filesystem::is_symlink(path("link.svg")));
    EXPECT_EQ(draw("8").text, content(path("a.svg")));
}

TEST_F(info_draw_file, that_cannot_be_written_is_named_with_the_reason)
{
    const std::pair<std::string, const char*> bad[] = {{path("no/such/folder.svg"), "No such file or directory"},
                                                       {path("."), "Is a directory"},
                                                       {"/dev/full", "No space left on device"}};
    for (const auto& [file, reason] : bad) {
        const outcome result = run_tool(tool, {"8", "--svg", file});
        EXPECT_EQ(1, result.status);
        EXPECT_EQ("ucx_layout_info: " + file + ": " + reason + "\n", result.err);
        EXPECT_EQ("", result.out);
    }
    EXPECT_EQ(2, run_tool(tool, {"8", "--svg", path("a.svg"), "--json"}).status);
    EXPECT_THAT(files(), testing::IsEmpty());
}

TEST_F(info_draw_file, is_whole_or_as_it_was)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "a program with ThreadSanitizer does not come to its main function with this limit";
#endif
    std::ofstream(path("old.svg")) << "old";
    rlimit whole{};
    getrlimit(RLIMIT_FSIZE, &whole);
    const rlimit half{.rlim_cur = 1024, .rlim_max = whole.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &half);
    const outcome fresh = run_tool(tool, {"strided(9,8,64)", "--svg", path("new.svg")});
    const outcome again = run_tool(tool, {"strided(9,8,64)", "--svg", path("old.svg")});
    setrlimit(RLIMIT_FSIZE, &whole);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ("ucx_layout_info: " + path("new.svg") + ": File too large\n", fresh.err);
    EXPECT_EQ(1, fresh.status);
    EXPECT_EQ(1, again.status);
    EXPECT_EQ("old", content(path("old.svg")));
    EXPECT_THAT(files(), testing::ElementsAre("old.svg"));
}

} // namespace

} // namespace ucxl::test
