// Limits of made-up control groups, in files as the kernel shows them.
#include "heap/memory_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

namespace ucxl::heap
{

namespace
{

constexpr std::size_t mb = std::size_t{1} << 20;

class memory_limits : public testing::Test
{
protected:
    memory_limits() { std::filesystem::create_directories(_root); }
    ~memory_limits() override { std::filesystem::remove_all(_root); }
    memory_limits(const memory_limits&)            = delete;
    memory_limits& operator=(const memory_limits&) = delete;

    void write(const std::string& name, const std::string& text) const
    {
        std::filesystem::create_directories((_root / name).parent_path());
        std::ofstream(_root / name) << text << '\n';
    }

    // With the groups of the process in these lines; in bytes.
    std::optional<std::size_t> find(const std::string& lines)
    {
        write("groups", lines);
        _limit = std::make_unique<memory_limit>();
        return _limit->find((_root / "groups").c_str(), (_root / "mounted").c_str()) ? std::optional(_limit->bytes())
                                                                                     : std::nullopt;
    }
    bool is_near() const { return _limit->is_near(); }

private:
    const std::filesystem::path _root = testing::TempDir() + "ucx_layout_limits_" + std::to_string(getpid());
    std::unique_ptr<memory_limit> _limit;
};

TEST_F(memory_limits, are_those_of_the_group_or_of_one_around_it)
{
    write("mounted/memory.current", "1");
    write("mounted/jobs/memory.max", "1048576");
    write("mounted/jobs/one/memory.max", "max");
    write("mounted/jobs/one/task/memory.max", "4194304");
    EXPECT_EQ(find("0::/jobs/one/task"), mb);
    EXPECT_EQ(find("0::/jobs/one"), mb);
    write("mounted/jobs/one/memory.max", "524288");
    EXPECT_EQ(find("0::/jobs/one/task"), mb / 2);
    EXPECT_EQ(find("0::/"), std::nullopt);
    write("mounted/memory.max", "2048"); // as a container sees its own group
    EXPECT_EQ(find("0::/"), 2048);
}

TEST_F(memory_limits, of_version_1_are_in_the_tree_of_the_memory_controller)
{
    write("mounted/memory/memory.limit_in_bytes", "9223372036854771712");
    write("mounted/memory/box/memory.limit_in_bytes", "1048576");
    EXPECT_EQ(find("5:cpu,cpuacct:/other\n4:hugetlb,memory:/box\n0::/unified"), mb);
    EXPECT_EQ(find("4:memory:/"), std::nullopt);
    EXPECT_EQ(find("4:memory_other:/box"), std::nullopt);
    EXPECT_EQ(find("4:cpu:/box"), std::nullopt);
}

TEST_F(memory_limits, of_names_that_a_container_does_not_see_are_those_around_them)
{
    write("mounted/memory/memory.limit_in_bytes", "1048576");
    EXPECT_EQ(find("4:memory:/docker/0123456789"), mb);
}

TEST_F(memory_limits, are_none_where_nothing_can_be_read)
{
    for (const std::string& lines : {std::string(), std::string("nothing"), std::string("0:"), std::string("0::"),
                                     std::string("0::/missing"), std::string("::::"), std::string("0:memory"),
                                     "0::/" + std::string(3000, 'x'), "0::" + std::string(5000, '/')}) {
        EXPECT_EQ(find(lines), std::nullopt) << lines.substr(0, 20);
    }
    write("mounted/memory.max", "-");
    EXPECT_EQ(find("0::/"), std::nullopt);
}

TEST_F(memory_limits, are_near_when_less_than_a_quarter_is_left)
{
    write("mounted/memory.max", "1000");
    write("mounted/memory.current", "750");
    ASSERT_EQ(find("0::/"), 1000);
    EXPECT_FALSE(is_near());
    write("mounted/memory.current", "751");
    EXPECT_TRUE(is_near());
    write("mounted/memory.current", "1001");
    EXPECT_TRUE(is_near());
    write("mounted/memory.max", "4000"); // an administrator may change it
    EXPECT_FALSE(is_near());
    write("mounted/memory.max", "max");
    EXPECT_FALSE(is_near());
}

} // namespace

} // namespace ucxl::heap
