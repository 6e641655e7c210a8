// mpi-layout-run with the launcher of each MPI that is installed, and what it decides without one.
#include "support/process.h"
#include "support/random.h"
#include "support/wait_until.h"
#include "sys/process.h"
#include "tools/mpi_run/command.h"
#include "tools/mpi_run/libraries.h"
#include "tools/mpi_run/output_of.h"
#include "tools/mpi_run/which_mpi.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ostream>
#include <string>
#include <vector>

namespace ucxl::test
{

namespace
{

using namespace mpi_run;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(launcher, is_known_by_what_it_prints_of_its_version)
{
    const auto open = launcher_of("mpirun.openmpi (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org\n");
    ASSERT_TRUE(open);
    EXPECT_EQ(open->kind, launcher_kind::openmpi);
    EXPECT_EQ(open->name, "Open MPI 5.0.7");
    const auto hydra = launcher_of("HYDRA build details:\n    Version:                                 4.2.1\n");
    ASSERT_TRUE(hydra);
    EXPECT_EQ(hydra->kind, launcher_kind::hydra);
    EXPECT_EQ(hydra->name, "MPICH 4.2.1");
    const auto intel = launcher_of("Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 20260929\n");
    ASSERT_TRUE(intel);
    EXPECT_EQ(intel->kind, launcher_kind::hydra);
    EXPECT_EQ(intel->name, "Intel MPI 2021.19.0");
    EXPECT_FALSE(launcher_of("GNU bash, version 5.2.37\n"));
    EXPECT_FALSE(launcher_of(""));
}

// A program that is none by its name would be run.
TEST(launcher, is_not_asked_if_its_name_is_that_of_another_program)
{
    EXPECT_FALSE(ask_launcher("echo"));
    EXPECT_FALSE(ask_launcher("/mpirun/program"));
}

TEST(program_of_an_mpi, is_known_by_the_libraries_that_it_is_linked_with)
{
    EXPECT_EQ(mpi_among("\tlibm.so.6 => /lib/libm.so.6 (0x1)\n\tlibmpi.so.40 => /lib/libmpi.so.40 (0x2)\n")->first,
              handles::openmpi);
    EXPECT_EQ(mpi_among("\tlibmpich.so.12 => /lib/libmpich.so.12 (0x2)\n")->first, handles::mpich);
    EXPECT_EQ(mpi_among("\tlibmpi.so.12 => not found\n")->first, handles::mpich);
    EXPECT_EQ(mpi_among("\tlibmpi_abi.so.1 => /lib/libmpi_abi.so.1 (0x2)\n")->first, handles::standard);
    EXPECT_FALSE(mpi_among("\tlibmpi.so.4 => /lib/libmpi.so.4 (0x2)\n\tlibmpi.so.401 => /lib/a (0x2)\n"));
    EXPECT_FALSE(mpi_among("\tnot a dynamic executable\n"));
}

TEST(output_of, is_what_a_program_prints_and_none_of_one_that_is_not_there)
{
    EXPECT_EQ(output_of({"sh", "-c", "echo one; echo two >&2; cat; exit 3"}), "one\n");
    EXPECT_FALSE(output_of({"/nowhere/program"}));
}

TEST(command, has_the_variables_behind_the_name_of_the_launcher)
{
    const std::vector<std::string> plain{"launch", "-n", "2", "a b"};
    EXPECT_THAT(with_variables(plain, launcher_kind::openmpi, {{"A", "x:y"}, {"B", "1"}}),
                ElementsAre("launch", "-x", "A=x:y", "-x", "B=1", "-n", "2", "a b"));
    EXPECT_THAT(with_variables(plain, launcher_kind::hydra, {{"A", "x:y"}, {"B", "1"}}),
                ElementsAre("launch", "-genv", "A", "x:y", "-genv", "B", "1", "-n", "2", "a b"));
}

TEST(command, is_quoted_for_a_shell)
{
    const std::vector<std::string> words{"launch", "-x", "A=/b:c", "a b", "", "it's", "$HOME", "*"};
    const std::string text = quoted(words);
    EXPECT_EQ(text, "launch -x A=/b:c 'a b' '' 'it'\\''s' '$HOME' '*'");
    EXPECT_EQ(output_of({"sh", "-c", "printf '%s\\n' " + text}), "launch\n-x\nA=/b:c\na b\n\nit's\n$HOME\n*\n");
}

TEST(command, names_the_option_of_the_launcher_that_sets_the_preload_itself)
{
    EXPECT_EQ(option_with_preload({"l", "-x", "LD_PRELOAD=a", "p"}, 4), "-x LD_PRELOAD=a");
    EXPECT_EQ(option_with_preload({"l", "-x", "LD_PRELOAD", "p"}, 4), "-x LD_PRELOAD");
    EXPECT_EQ(option_with_preload({"l", "-genv", "LD_PRELOAD", "a", "p"}, 5), "-genv LD_PRELOAD");
    EXPECT_EQ(option_with_preload({"l", "-genvlist", "HOME,LD_PRELOAD", "p"}, 4), "-genvlist HOME,LD_PRELOAD");
    EXPECT_EQ(option_with_preload({"l", "--mca", "mca_base_env_list", "A;LD_PRELOAD=b", "p"}, 5),
              "mca_base_env_list A;LD_PRELOAD=b");
    EXPECT_FALSE(option_with_preload({"l", "-x", "LD_PRELOAD_PATH=a", "-x", "MY_LD_PRELOAD", "p"}, 6));
    EXPECT_FALSE(option_with_preload({"l", "program", "-x", "LD_PRELOAD=a"}, 2));
    EXPECT_FALSE(option_with_preload({"l", "-x"}, 2));
}

TEST(preload, keeps_what_is_there_first_and_names_no_library_twice)
{
    EXPECT_EQ(preload_with("", {"/l/a.so", "/l/b.so"}), "/l/a.so:/l/b.so");
    EXPECT_EQ(preload_with("/x/tool.so", {"/l/a.so"}), "/x/tool.so:/l/a.so");
    EXPECT_EQ(preload_with("/y/a.so /x/tool.so", {"/l/a.so", "/l/b.so"}), "/y/a.so /x/tool.so:/l/b.so");
    EXPECT_EQ(preload_with("my-a.so", {"/l/a.so"}), "my-a.so:/l/a.so");
}

struct launched {
    const char* name;
    std::vector<std::string> launcher;
};

void PrintTo(const launched& each, std::ostream* stream)
{
    *stream << each.name;
}

std::vector<launched> installed_launchers()
{
    return {
#ifdef HAVE_OPENMPI
        {"openmpi", {"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe"}},
#endif
#ifdef HAVE_MPICH
        {"mpich", {"mpiexec.mpich"}},
#endif
    };
}

std::size_t count(const std::string& text, const std::string& part)
{
    std::size_t times = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++times;
    }
    return times;
}

class mpi_layout_run : public testing::TestWithParam<launched>
{
protected:
    void SetUp() override
    {
        if (std::getenv("UCXL_SANITIZER_LIBRARY") != nullptr) {
            GTEST_SKIP() << "a sanitizer's library would have to be preloaded in the processes, too";
        }
    }

    // Two processes, unless told otherwise.
    std::vector<std::string> command(const std::vector<std::string>& options, const std::vector<std::string>& launch,
                                     const std::vector<std::string>& program) const
    {
        std::vector<std::string> all = options;
        all.insert(all.end(), GetParam().launcher.begin(), GetParam().launcher.end());
        all.insert(all.end(), launch.begin(), launch.end());
        all.insert(all.end(), program.begin(), program.end());
        return all;
    }
    ended_process run(const std::vector<std::string>& options, const std::vector<std::string>& launch,
                      const std::vector<std::string>& program, const environment& more = {}) const
    {
        environment variables{{"OMPI_MCA_mpi_yield_when_idle", "1"}};
        variables.insert(variables.end(), more.begin(), more.end());
        return process(program_path("mpi-layout-run"), command(options, launch, program), {.variables = variables})
            .wait(120s);
    }
    bool is_openmpi() const { return std::string(GetParam().name) == "openmpi"; }
    std::string library() const { return "libmpi_layout_" + std::string(GetParam().name) + ".so"; }
    std::vector<std::string> calls() const
    {
        return {std::string(MPI_LAYOUT_BUILD) + "/mpi_datatype_calls_" + GetParam().name, std::to_string(run_seed()),
                "1", "sendrecv"};
    }
};

TEST_P(mpi_layout_run, moves_datatypes_and_says_so_in_one_line)
{
    const auto ended = run({}, {"-n", "2"}, calls(), {{"UCX_LAYOUT_MPI_TYPES", "all"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_EQ(count(ended.err, "ucx-layout-mpi: "), 1u) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(is_openmpi() ? ": datatypes are layouts" : ": datatypes are windows"));
    EXPECT_THAT(ended.err, HasSubstr(is_openmpi() ? "ucx-layout-mpi: Open MPI v" : "ucx-layout-mpi: MPICH "));
}

TEST_P(mpi_layout_run, says_nothing_if_it_is_quiet)
{
    const auto ended = run({"--quiet"}, {"-n", "2"}, calls());
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_THAT(ended.err, Not(HasSubstr("ucx-layout-mpi")));
}

TEST_P(mpi_layout_run, says_why_all_is_left_to_mpi)
{
    const auto ended = run({}, {"-n", "2"}, calls(), {{"UCX_LAYOUT_MPI_ENABLE", "n"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_EQ(count(ended.err, "datatypes are left to MPI: UCX_LAYOUT_MPI_ENABLE says so"), 1u) << ended.err;
}

TEST_P(mpi_layout_run, preloads_in_the_processes_and_not_in_the_launcher)
{
    const auto ended = run({}, {"-n", "1"}, {"sh", "-c", "echo \"in $LD_PRELOAD,\"; cat /proc/$PPID/maps"},
                           {{"LD_PRELOAD", "libm.so.6"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    const std::size_t end = ended.out.find(",\n");
    ASSERT_NE(end, std::string::npos) << ended.output();
    EXPECT_THAT(ended.out.substr(0, end), StartsWith("in libm.so.6:/"));
    EXPECT_THAT(ended.out.substr(0, end), HasSubstr("/" + library()));
    EXPECT_THAT(ended.out.substr(end), Not(HasSubstr("layout")));
}

TEST_P(mpi_layout_run, preloads_the_heap_unless_told_not_to)
{
    if (path_of_library(heap_library).empty()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const std::vector<std::string> program{"sh", "-c", "echo \"in $LD_PRELOAD\""};
    EXPECT_THAT(run({}, {"-n", "1"}, program).out, HasSubstr(heap_library));
    EXPECT_THAT(run({"--no-heap"}, {"-n", "1"}, program).out, Not(HasSubstr(heap_library)));
}

TEST_P(mpi_layout_run, shares_static_arrays_if_told_to)
{
    const std::vector<std::string> program{"sh", "-c", "echo \"arrays $UCX_LAYOUT_MPI_STATIC_ARRAYS.\""};
    EXPECT_THAT(run({"--static-arrays"}, {"-n", "1"}, program).out, HasSubstr("arrays y."));
    EXPECT_THAT(run({}, {"-n", "1"}, program).out, HasSubstr("arrays ."));
}

TEST_P(mpi_layout_run, ends_with_the_status_of_the_launcher)
{
    EXPECT_EQ(run({}, {"-n", "1"}, {"sh", "-c", "exit 7"}).status, 7);
}

TEST_P(mpi_layout_run, is_the_launcher_that_signals_reach)
{
    process started(program_path("mpi-layout-run"),
                    command({}, {"-n", "1"}, {"sh", "-c", "echo process $$,; exec sleep 300"}));
    ASSERT_TRUE(started.wait_for_output(","));
    int pid = 0;
    ASSERT_EQ(std::sscanf(started.out().c_str(), "process %d,", &pid), 1) << started.out();
    // The launcher ends its processes. Another process in its place would leave them behind.
    const watched_process launched(pid);
    ASSERT_TRUE(launched.is_alive());
    ::kill(started.pid(), SIGTERM);
    const auto ended = started.wait(30s);
    EXPECT_FALSE(ended.timed_out);
    EXPECT_NE(ended.status, 0);
    EXPECT_TRUE(wait_until([&] { return launched.has_ended(); })) << "the process outlives the launcher";
}

TEST_P(mpi_layout_run, prints_the_command_and_runs_nothing)
{
    const auto ended = run({"--dry-run", "--no-heap"}, {"-n", "1"}, {"sh", "-c", "echo it ran"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    EXPECT_THAT(ended.out, StartsWith(GetParam().launcher.front() + (is_openmpi() ? " -x LD_PRELOAD=" : " -genv ")));
    EXPECT_THAT(ended.out, testing::EndsWith(" -n 1 sh -c 'echo it ran'\n"));
    EXPECT_EQ(count(ended.out, "\n"), 1u);
    // A shell runs it.
    const auto by_shell = process("/bin/sh", {"-c", ended.out}).wait();
    EXPECT_EQ(by_shell.out, "it ran\n") << by_shell.err;
}

TEST_P(mpi_layout_run, refuses_a_preload_by_the_launcher_and_names_the_option)
{
    const auto ended = run({},
                           is_openmpi() ? std::vector<std::string>{"-x", "LD_PRELOAD=/a.so"}
                                        : std::vector<std::string>{"-genv", "LD_PRELOAD", "/a.so"},
                           {"true"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.err, HasSubstr(is_openmpi() ? "-x LD_PRELOAD=/a.so: " : "-genv LD_PRELOAD: "));
}

TEST_P(mpi_layout_run, leaves_the_launcher_of_another_mpi_as_it_is_and_says_so)
{
    for (const launched& other : installed_launchers()) {
        if (std::string(other.name) == GetParam().name) {
            continue;
        }
        const std::string program = std::string(MPI_LAYOUT_BUILD) + "/mpi_datatype_calls_" + other.name;
        const auto ended          = run({"--dry-run"}, {"-n", "1"}, {program});
        EXPECT_EQ(ended.status, 0) << ended.err;
        EXPECT_THAT(ended.err, HasSubstr(" is the launcher of "));
        EXPECT_THAT(ended.err, HasSubstr(program + " needs libmpi"));
        EXPECT_THAT(ended.out, Not(HasSubstr("LD_PRELOAD")));
        return;
    }
    GTEST_SKIP() << "this needs two MPIs";
}

TEST_P(mpi_layout_run, takes_the_name_of_the_mpi_in_the_place_of_asking)
{
    for (const auto& [name, wanted] :
         {std::pair{"openmpi", "-x LD_PRELOAD="}, std::pair{"mpich", "-genv LD_PRELOAD "}}) {
        const auto ended =
            process(program_path("mpi-layout-run"), {"--mpi", name, "--dry-run", "my-launcher", "program"}).wait();
        EXPECT_EQ(ended.status, 0);
        if (!path_of_library("libmpi_layout_" + std::string(name) + ".so").empty()) {
            EXPECT_THAT(ended.out, HasSubstr(wanted)) << ended.err;
        }
    }
}

// The user's choice stays, and what it means is said.
TEST_P(mpi_layout_run, keeps_the_pml_that_the_user_chose)
{
    if (!is_openmpi()) {
        GTEST_SKIP() << "only Open MPI has one";
    }
    const auto ended = run({}, {"--mca", "pml", "ob1", "--mca", "btl", "self,sm", "-n", "2"}, calls());
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.err,
                HasSubstr("datatypes are left to MPI: Open MPI does not move messages by UCX, but by its pml "
                          "ob1"));
    EXPECT_THAT(ended.err, HasSubstr("the program's memory is not shared"));
}

// Memory that nobody can use is slower for nothing.
TEST_P(mpi_layout_run, shares_no_memory_where_openmpi_has_no_ucx)
{
    if (!is_openmpi() || path_of_library("libucx_layout_heap.so").empty()) {
        GTEST_SKIP() << "this needs Open MPI and the heap";
    }
    const auto heap = HasSubstr("libucx_layout_heap.so");
    for (const auto* const without : {"ob1", "ob1,cm", "^ucx"}) {
        const auto ended = run({"--dry-run"}, {"--mca", "pml", without, "-n", "2"}, {"program"});
        EXPECT_THAT(ended.out, Not(heap)) << without;
        EXPECT_THAT(ended.out, HasSubstr("libmpi_layout_openmpi.so")) << without;
        EXPECT_THAT(ended.err, HasSubstr("the program's memory is not shared")) << without;
    }
    for (const auto* const with : {"ucx", "ob1,ucx", "^ob1", "^ucxx"}) {
        const auto ended = run({"--dry-run"}, {"--mca", "pml", with, "-n", "2"}, {"program"});
        EXPECT_THAT(ended.out, heap) << with;
        EXPECT_EQ(ended.err, "") << with;
    }
}

TEST(mpi_layout_run_alone, names_what_is_wrong_with_its_command_line)
{
    const std::string tool                                                  = program_path("mpi-layout-run");
    const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
        {{}, "a launcher is missing"},
        {{"--no-heat", "mpirun"}, "--no-heat is not an option"},
        {{"--mpi", "lam", "mpirun"}, "--mpi: lam"},
    };
    for (const auto& [arguments, wanted] : all) {
        const auto ended = process(tool, arguments).wait();
        EXPECT_EQ(ended.status, 2) << wanted;
        EXPECT_THAT(ended.err, HasSubstr(wanted));
    }
}

TEST(mpi_layout_run_alone, starts_what_is_no_launcher_as_it_is_and_says_so)
{
    const auto ended = process(program_path("mpi-layout-run"), {"sh", "-c", "echo \"[$LD_PRELOAD]\""},
                               {.variables = {{"LD_PRELOAD", ""}}})
                           .wait();
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.out, "[]\n");
    EXPECT_THAT(ended.err, HasSubstr("sh is not a launcher of Open MPI, MPICH or Intel MPI"));
    EXPECT_EQ(process(program_path("mpi-layout-run"), {"/nowhere/mpirun"}).wait().status, 127);
}

INSTANTIATE_TEST_SUITE_P(, mpi_layout_run, testing::ValuesIn(installed_launchers()),
                         [](const auto& each) { return std::string(each.param.name); });

} // namespace

} // namespace ucxl::test
