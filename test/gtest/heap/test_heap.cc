// A program that knows nothing of the heap, with it preloaded: each test is a process of its own (heap_calls.cc).
#include "support/process.h"

#include "heap/own_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace
{

using ucxl::test::ended_process;
using ucxl::test::environment;
using ucxl::test::process;
using ucxl::test::program_path;

ended_process run(const std::string& name, const environment& options = {}, const std::string& preloaded = HEAP_LIBRARY)
{
    environment variables = options;
    variables.emplace_back("LD_PRELOAD", preloaded);
    return process(program_path("heap_calls"), {name}, {.variables = variables, .without_ucx_options = true}).wait();
}

testing::AssertionResult passes(const std::string& name, const environment& options = {},
                                const std::string& preloaded = HEAP_LIBRARY)
{
    const ended_process ended = run(name, options, preloaded);
    if (ended.status == 0 && ended.output().empty()) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << name << " ended with status " << ended.status << ": " << ended.output();
}

std::string says(const std::string& name, const environment& options)
{
    const ended_process ended = run(name, options);
    EXPECT_EQ(ended.status, 0) << ended.output();
    return ended.err;
}

TEST(heap, has_the_large_blocks_of_all_functions)
{
    EXPECT_TRUE(passes("all_functions"));
}

TEST(heap, leaves_small_blocks_to_the_c_library)
{
    EXPECT_TRUE(passes("small_blocks"));
}

TEST(heap, refuses_what_the_c_library_refuses)
{
    EXPECT_TRUE(passes("wrong_arguments"));
}

TEST(heap, blocks_keep_their_bytes_when_they_are_resized)
{
    EXPECT_TRUE(passes("resizing"));
    EXPECT_TRUE(passes("resizing", {{"UCX_LAYOUT_HEAP_LIMIT", "64m"}}));
}

TEST(heap, memory_of_calloc_is_zero_after_others_used_it)
{
    EXPECT_TRUE(passes("zeroed"));
}

TEST(heap, gives_memory_back_to_the_system)
{
    EXPECT_TRUE(passes("given_back"));
}

// A control group with a limit on memory, below the one around all. Only root may make it.
class control_group
{
public:
    explicit control_group(std::size_t limit)
    {
        for (const auto& [root, name] :
             {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), std::pair("/sys/fs/cgroup", "memory.max")}) {
            const std::string folder = std::string(root) + "/ucx_layout_test_" + std::to_string(getpid());
            std::error_code ignored;
            if (!std::filesystem::create_directory(folder, ignored)) {
                continue;
            }
            _folder = folder;
            std::ofstream file(folder + '/' + name);
            if (file && file << limit << std::flush) {
                return;
            }
            std::filesystem::remove(folder, ignored);
            _folder.clear();
        }
    }
    ~control_group()
    {
        std::error_code ignored;
        std::filesystem::remove(_folder, ignored);
    }
    control_group(const control_group&)            = delete;
    control_group& operator=(const control_group&) = delete;

    bool is_there() const { return !_folder.empty(); }
    std::string processes() const { return _folder + "/cgroup.procs"; }

private:
    std::string _folder;
};

TEST(heap, gives_memory_back_at_once_near_the_limit_of_a_control_group)
{
    const control_group group(std::size_t{44} << 20);
    if (!group.is_there()) {
        GTEST_SKIP() << "no control group with a limit on memory can be made here";
    }
    const std::string join_and_run = R"(echo $$ > "$0" && exec "$1" limited)";
    const ended_process ended = process("/bin/sh", {"-c", join_and_run, group.processes(), program_path("heap_calls")},
                                        {.variables = {{"LD_PRELOAD", HEAP_LIBRARY}}, .without_ucx_options = true})
                                    .wait();
    EXPECT_EQ(ended.status, 0) << ended.output();
}

TEST(heap, serves_several_threads)
{
    EXPECT_TRUE(passes("threads"));
}

TEST(heap, that_is_full_is_followed_by_plain_memory)
{
    EXPECT_TRUE(passes("exhausted", {{"UCX_LAYOUT_HEAP_LIMIT", "64m"}}));
    EXPECT_TRUE(passes("plain", {{"UCX_LAYOUT_HEAP_LIMIT", "0"}}));
    EXPECT_TRUE(passes("plain", {{"UCX_LAYOUT_HEAP_MIN", "inf"}}));
}

TEST(heap, has_a_limit_of_less_than_a_piece)
{
    EXPECT_TRUE(passes("small_limit", {{"UCX_LAYOUT_HEAP_LIMIT", "32m"}}));
}

TEST(heap, asks_the_c_library_for_lengths_of_its_blocks)
{
    EXPECT_TRUE(passes("small_to_large", {}, std::string(HEAP_LIBRARY) + ":" + program_path("other_malloc.so")));
}

TEST(heap, of_a_process_that_forks_is_copied_for_the_child)
{
    EXPECT_TRUE(passes("forks"));
}

TEST(heap, is_copied_while_other_threads_allocate)
{
    EXPECT_TRUE(passes("forks_among_threads"));
}

TEST(heap, with_protected_pages_is_copied_for_the_child)
{
    EXPECT_TRUE(passes("protected_pages"));
}

TEST(heap, without_its_file_is_copied_for_the_child)
{
    EXPECT_TRUE(passes("protected_pages_without_file"));
}

TEST(heap, that_is_sparse_is_sparse_in_the_child)
{
    EXPECT_TRUE(passes("sparse_fork"));
}

TEST(heap, gives_free_addresses_back_where_they_become_limited)
{
    EXPECT_TRUE(passes("forks_below_used_addresses"));
    EXPECT_TRUE(passes("grows_below_used_addresses"));
}

// One piece, behind which no addresses are left.
const environment one_piece{{"UCX_LAYOUT_HEAP_LIMIT", "64m"}};
constexpr auto lost_piece =
    "ucx-layout-heap WARN  a child cannot use 64 MB of large blocks: there was no room to copy them\n";

TEST(heap, of_a_child_is_its_own_where_the_parent_has_no_addresses_for_a_copy)
{
    EXPECT_TRUE(passes("forks_without_addresses", one_piece));
}

TEST(heap, that_cannot_be_copied_is_not_in_the_child)
{
    EXPECT_EQ(says("forks_without_addresses_and_file", one_piece), lost_piece);
}

TEST(heap, that_the_child_may_not_map_is_not_in_it)
{
    EXPECT_EQ(says("forks_below_used_data", {}), lost_piece);
}

TEST(heap, is_copied_while_signals_arrive)
{
    EXPECT_TRUE(passes("forks_among_signals", one_piece));
}

TEST(heap, of_a_cancelled_thread_is_copied_for_its_child)
{
    EXPECT_EQ(says("forks_of_cancelled_threads", one_piece), lost_piece);
}

TEST(heap, may_be_the_stack_of_what_forks)
{
    EXPECT_TRUE(passes("forks_on_a_block"));
    EXPECT_TRUE(passes("forks_on_a_block_without_addresses", one_piece));
    EXPECT_EQ(says("forks_on_a_block_without_copy", one_piece), lost_piece);
}

TEST(heap, may_be_stacks_beside_that_of_what_forks)
{
    EXPECT_TRUE(passes("forks_beside_stacks"));
}

TEST(heap, may_be_the_stack_of_a_thread_that_forks)
{
    EXPECT_TRUE(passes("forks_of_a_thread_on_a_block"));
}

TEST(own_file, is_not_another_one_with_its_descriptor_and_inode)
{
    const int fd = memfd_create("of the test", MFD_CLOEXEC);
    struct stat status{};
    ASSERT_EQ(fstat(fd, &status), 0);
    const ucxl::heap::own_file file{.fd = fd, .identity = {status.st_dev, status.st_ino}};
    EXPECT_TRUE(file.is_open());
    ucxl::heap::own_file other = file;
    ++other.identity.device;
    EXPECT_FALSE(other.is_open());
    close(fd);
    EXPECT_FALSE(file.is_open());
    EXPECT_FALSE(ucxl::heap::own_file().is_open());
}

TEST(heap, is_no_place_to_cancel_a_thread)
{
    EXPECT_TRUE(passes("early_and_late", {{"HEAP_CALLS_FIRST", "cancelled"}}));
}

TEST(heap, begins_on_the_smallest_stack)
{
    EXPECT_TRUE(passes("early_and_late", {{"HEAP_CALLS_FIRST", "small_stack"}}));
}

TEST(heap, of_a_process_that_spawns_stays_as_it_is)
{
    EXPECT_TRUE(passes("other_children"));
}

TEST(heap, grows_after_a_program_closed_its_file)
{
    EXPECT_TRUE(passes("closed_descriptors"));
}

TEST(heap, has_a_descriptor_out_of_the_way)
{
    EXPECT_TRUE(passes("high_descriptor"));
}

TEST(heap, grows_no_table_of_descriptors_where_threads_are)
{
    EXPECT_TRUE(passes("descriptor_among_threads", {{"HEAP_CALLS_THREAD", "y"}}));
}

TEST(heap, stays_out_without_descriptors)
{
    EXPECT_EQ(says("plain", {{"HEAP_CALLS_FIRST", "no_descriptors"}, {"UCX_LOG_LEVEL", "info"}}),
              "ucx-layout-heap INFO  large allocations are plain memory: no file in memory could be made "
              "(memfd_create(2))\n");
}

TEST(heap, does_not_grow_beyond_the_limit_of_files)
{
    EXPECT_TRUE(passes("short_files"));
}

TEST(heap, cannot_become_shorter)
{
    EXPECT_TRUE(passes("sealed"));
}

TEST(heap, serves_before_main_and_after_it)
{
    EXPECT_TRUE(passes("early_and_late"));
}

TEST(heap, stays_out_where_addresses_or_data_are_limited)
{
    for (const auto& [option, limited] : {std::pair{"-v", "addresses"}, std::pair{"-d", "data"}}) {
        const std::string line = std::string("ulimit ") + option +
                                 " 8000000; UCX_LOG_LEVEL=info LD_PRELOAD=" + HEAP_LIBRARY + " exec " +
                                 program_path("heap_calls") + " plain";
        const ended_process ended = process("/bin/sh", {"-c", line}).wait();
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_EQ(ended.err, std::string("ucx-layout-heap INFO  large allocations are plain memory: the ") + limited +
                                 " of this process are limited (ulimit " + option + ")\n");
    }
}

TEST(heap, names_an_option_with_a_bad_value)
{
    EXPECT_EQ(says("small_blocks", {{"UCX_LAYOUT_HEAP_MIN", "12x"}}),
              "ucx-layout-heap ERROR UCX_LAYOUT_HEAP_MIN=12x is not a number of bytes such as 128k, auto or inf; the "
              "default is used\n");
    for (const char* const value : {"-1", "", "k", "99999999999t", "1kk"}) {
        EXPECT_NE(says("small_blocks", {{"UCX_LAYOUT_HEAP_LIMIT", value}}).find("UCX_LAYOUT_HEAP_LIMIT="),
                  std::string::npos)
            << value;
    }
    EXPECT_EQ(says("small_blocks", {{"UCX_LAYOUT_HEAP_MIN", "128KB"}, {"UCX_LAYOUT_HEAP_LIMIT", "auto"}}), "");
}

} // namespace
