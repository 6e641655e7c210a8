// Unmodified MPI programs with the library preloaded, run by the launcher of each MPI that is installed.
#include "support/network_cards.h"
#include "support/process.h"
#include "support/random.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ucxl::test
{

namespace
{

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

struct mpi {
    const char* name;
    const char* programs; // which the names of programs for it end with
    const char* library;
    std::vector<std::string> launcher;
    std::vector<std::string> with_ucx; // further arguments
    std::vector<std::string> without_ucx;
    bool has_fortran       = false;
    const char* abi_folder = ""; // where its libmpi_abi.so.1 is

    bool is_openmpi() const { return launcher[0] == "mpirun.openmpi"; }
};

void PrintTo(const mpi& each, std::ostream* stream)
{
    *stream << each.name;
}

const mpi openmpi{
    "openmpi",
    "openmpi",
    "libmpi_layout_openmpi.so",
    {"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe"},
    {"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "--mca", "osc", "ucx"},
    {"--mca", "pml", "ob1", "--mca", "btl", "self,sm"},
#ifdef HAVE_OPENMPI_FORTRAN
    true
#endif
};
const mpi mpich{"mpich", "mpich", "libmpi_layout_mpich.so", {"mpiexec.mpich"}, {}, {},
#ifdef HAVE_MPICH_FORTRAN
                true
#endif
};

// The same MPI with the handles of the standard ABI; not used if none of them is installed.
[[maybe_unused]] mpi with_abi(mpi made, const char* name, const char* folder)
{
    made.name        = name;
    made.programs    = "abi";
    made.library     = "libmpi_layout.so";
    made.has_fortran = false;
    made.abi_folder  = folder;
    return made;
}

// MPICH sleeps while it waits, so a message takes longer, but processes that share a core get on.
const environment mpich_sleeps{{"MPIR_CVAR_ENABLE_HEAVY_YIELD", "1"}};

// Processes that wait for each other do not keep the cores from those that they wait for.
void yield_when_idle(environment& variables, int num_ranks)
{
    variables.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
    if (num_ranks > 2) {
        variables.insert(variables.end(), mpich_sleeps.begin(), mpich_sleeps.end());
    }
}

std::string libraries_of(const mpi& chosen)
{
    return std::string(chosen.abi_folder) + ":" + MPI_LAYOUT_BUILD + "/.libs";
}

// Empty without a sanitizer.
std::string sanitizer_library()
{
    const char* const path = std::getenv("UCXL_SANITIZER_LIBRARY");
    return path != nullptr ? path : "";
}

std::string preload_of(const mpi& chosen)
{
    // That of a sanitizer has to be the first one of a process.
    const std::string sanitizer = sanitizer_library();
    return (sanitizer.empty() ? "" : sanitizer + ":") + MPI_LAYOUT_BUILD + "/.libs/" + chosen.library;
}

environment variables_of(const mpi& chosen, const environment& more)
{
    environment variables{{"LD_PRELOAD", preload_of(chosen)},
                          {"LD_LIBRARY_PATH", libraries_of(chosen)},
                          {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
    if (std::getenv("UCXL_SANITIZER_LIBRARY") != nullptr) {
        // MPI frees little at its end, and it is not what is tested. mpirun is not instrumented.
        variables.emplace_back("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0");
        // Open MPI writes its memory hooks over the first bytes of munmap and others. Where these are the sanitizer's,
        // of 8 bytes each, it destroys their neighbours.
        variables.emplace_back("OMPI_MCA_memory", "^patcher");
    }
    variables.insert(variables.end(), more.begin(), more.end());
    return variables;
}

std::string path_of(const std::string& name)
{
    for (const char* const folder : {"/usr/bin/", "/usr/local/bin/"}) {
        if (access((folder + name).c_str(), X_OK) == 0) {
            return folder + name;
        }
    }
    return name;
}

ended_process run(const mpi& chosen, int num_ranks, const std::vector<std::string>& launch,
                  const std::vector<std::string>& program, const environment& more = {})
{
    std::vector<std::string> arguments(chosen.launcher.begin() + 1, chosen.launcher.end());
    arguments.insert(arguments.end(), {"-n", std::to_string(num_ranks)});
    arguments.insert(arguments.end(), launch.begin(), launch.end());
    arguments.insert(arguments.end(), program.begin(), program.end());
    environment variables = variables_of(chosen, more);
    yield_when_idle(variables, num_ranks);
    return process(path_of(chosen.launcher[0]), arguments, {.variables = variables}).wait(120s);
}

// A program of the build, or a library that is none of libtool.
std::string built(const std::string& name)
{
    return std::string(MPI_LAYOUT_BUILD) + "/" + name;
}

std::string calls_program(const mpi& chosen)
{
    return built("mpi_datatype_calls_") + chosen.programs;
}

std::string written(const std::string& path, const std::string& text)
{
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::trunc) << text;
    return path;
}

std::string with_heap(const mpi& chosen)
{
    return preload_of(chosen) + ":" + MPI_LAYOUT_BUILD + "/.libs/libucx_layout_heap.so";
}

bool has_heap()
{
    return std::filesystem::exists(std::string(MPI_LAYOUT_BUILD) + "/.libs/libucx_layout_heap.so");
}

// MPI itself moves some random datatypes wrongly (Open MPI 5.0.7: hindexed_block of hindexed, and in MPI_Alltoallw
// hvector of indexed_block), but not those of this seed.
constexpr std::uint64_t seed_right_in_mpi = 1;

class mpi_program : public testing::TestWithParam<mpi>
{
protected:
    ended_process calls(int num_ranks, const std::string& rounds, const std::vector<std::string>& names = {},
                        const environment& more = {}, std::uint64_t seed = run_seed()) const
    {
        std::vector<std::string> program{calls_program(GetParam()), std::to_string(seed), rounds};
        program.insert(program.end(), names.begin(), names.end());
        environment all = more;
        if (std::ranges::find(more, "UCX_LAYOUT_MPI_TYPES", &environment::value_type::first) == more.end()) {
            all.emplace_back("UCX_LAYOUT_MPI_TYPES", "all");
        }
        return run(GetParam(), num_ranks, GetParam().with_ucx, program, all);
    }

    // MPICH 4.2.1 aborts one-sided operations with some random datatypes, also without the library
    // (typerep_yaksa_pack.c:521, ucp_request.c:212).
    std::uint64_t seed_of_one_sided() const { return GetParam().is_openmpi() ? run_seed() : seed_right_in_mpi; }

    // In a program that starts MPI by a session.
    ended_process session_calls(const std::vector<std::string>& arguments = {}) const
    {
        std::vector<std::string> program{built("mpi_session_calls_") + GetParam().programs};
        program.insert(program.end(), arguments.begin(), arguments.end());
        return run(GetParam(), 2, GetParam().with_ucx, program,
                   {{"UCX_LAYOUT_MPI_TYPES", "all"}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
    }

    static bool lacks_sessions(const ended_process& ended)
    {
        return ended.output().contains("does not support MPI sessions");
    }
};

TEST_P(mpi_program, all_calls_move_random_datatypes_between_two_processes)
{
    const auto ended = calls(2, "3", {}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    // All are understood: what MPI says of size and bounds would otherwise leave them to it.
    for (const char* const reason : {"MPI lists", "MPI does not tell", "is unknown here", "exceeds a limit"}) {
        EXPECT_THAT(ended.err, Not(HasSubstr(reason)));
    }
    // MPICH 4.2.1 says that the bytes of some cyclic arrays (darray) begin where the first element does, although those
    // of the element begin later.
    if (GetParam().is_openmpi()) {
        EXPECT_THAT(ended.err, Not(HasSubstr("MPI gives it")));
    }
}

TEST_P(mpi_program, all_calls_move_random_datatypes_among_four_processes)
{
    const auto ended = calls(4, "1");
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
}

TEST_P(mpi_program, threads_use_datatypes_at_the_same_time)
{
    for (const char* const engine : {"auto", "windows"}) {
        const auto ended = calls(2, "2", {"threads"}, {{"UCX_LAYOUT_MPI_ENGINE", engine}});
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    }
}

TEST_P(mpi_program, threads_flush_the_same_target_at_the_same_time)
{
    if (GetParam().is_openmpi()) {
        GTEST_SKIP() << "Open MPI 5.0.7 over UCX flushes in a thread that does not own the worker, and UCX aborts it, "
                        "also without the library";
    }
    const auto ended = calls(2, "1", {"threads-flush"}, mpich_sleeps);
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr("2 comparisons, 0 wrong"));
}

TEST_P(mpi_program, a_flush_waits_for_what_another_thread_unpacks)
{
    if (GetParam().is_openmpi()) {
        GTEST_SKIP() << "Open MPI 5.0.7 over UCX flushes in a thread that does not own the worker, and UCX aborts it, "
                        "also without the library";
    }
    const auto ended = calls(2, "1", {"threads-test"}, mpich_sleeps);
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr("2 comparisons, 0 wrong"));
}

// Not what Open MPI gets otherwise: datatypes of UCX.
TEST_P(mpi_program, all_calls_move_random_datatypes_by_windows)
{
    if (!GetParam().is_openmpi()) {
        GTEST_SKIP() << "this MPI gets windows in the tests above";
    }
    const auto ended = calls(2, "2", {}, {{"UCX_LAYOUT_MPI_ENGINE", "windows"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
}

// One window for each datatype and count: every other buffer needs the same one.
TEST_P(mpi_program, windows_are_bound_to_other_buffers)
{
    const auto ended =
        calls(2, "4", {"buffers"}, {{"UCX_LAYOUT_MPI_WINDOWS", "1"}, {"UCX_LAYOUT_MPI_ENGINE", "windows"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
}

// The sum of a column of the report, over its rows, or those of one name, and processes.
std::uint64_t reported(const std::string& text, const std::string& title, const std::string& name = {})
{
    std::uint64_t sum = 0;
    std::size_t end   = 0; // of the column in the rows of this table
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (const std::size_t at = line.find(title); line.starts_with("name ") && at != line.npos) {
            end = at + title.size();
        } else if (line.starts_with("ucx-layout-mpi")) {
            end = 0;
        } else if (end > 0 && line.size() >= end && line.find(" comparisons") == line.npos &&
                   !line.starts_with("total ") && (name.empty() || line.starts_with(name + ' '))) {
            const std::size_t start = line.find_last_of(' ', end - 1) + 1;
            sum += std::strtoull(line.c_str() + start, nullptr, 10);
        }
    }
    return sum;
}

TEST_P(mpi_program, the_report_tells_what_was_taken)
{
    const auto messages = calls(2, "3", {"sendrecv"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_GT(reported(messages.err, "messages"), 4u) << messages.output();
    EXPECT_EQ(reported(messages.err, "copies"), 0u) << messages.output();
    const auto copies = calls(2, "3", {"alltoallw"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_GT(reported(copies.err, "copies"), 4u) << copies.output();
    // Some rounds of these have one block only, about one of eight, and a persistent request counts once.
    const std::vector<std::string> names{"put-fence",         "get-lock",         "accumulate-request",
                                         "fetch-post",        "many-operations",  "get-accumulate-lock",
                                         "gather-persistent", "bsend-recv",       "alltoallw-nonblocking",
                                         "ibsend-recv",       "persistent-bsend", "isendrecv-replace"};
    const auto each_copies = calls(2, "8", names, {{"UCX_LAYOUT_MPI_REPORT", "y"}}, seed_of_one_sided());
    EXPECT_EQ(each_copies.status, 0) << each_copies.output();
    for (const std::string& name : names) {
        EXPECT_GT(reported(each_copies.err, "copies", name), 0u) << name << each_copies.output();
    }
}

// What it would cost MPI to pack 390 MB three times took longer than the run. The column before the last number.
TEST_P(mpi_program, the_report_measures_no_element_of_many_megabytes)
{
    constexpr const char *row    = "\\(hvector\\) +1[0-9]+ +[0-9]+ +[0-9]+ +0 +[0-9]+ +[0-9]+",
                         *number = " +-?[0-9]+\\.[0-9]+";
    const auto shorter           = calls(2, "1", {"long"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_THAT(shorter.err, ContainsRegex(std::string(row) + number + " +0 ")) << shorter.output();
    const auto longer = calls(2, "1", {"long-element"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_THAT(longer.output(), HasSubstr("1 comparisons, 0 wrong"));
    EXPECT_EQ(reported(longer.err, "messages"), 2u) << longer.output();
    EXPECT_THAT(longer.err, ContainsRegex(std::string(row) + " +- +0 ")) << longer.output();
}

TEST_P(mpi_program, one_sided_operations_move_random_datatypes_in_epochs_of_all_kinds)
{
    for (const int num_ranks : {2, 4}) {
        const auto ended =
            calls(num_ranks, num_ranks == 2 ? "3" : "1", {"one-sided"}, mpich_sleeps, seed_of_one_sided());
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    }
}

std::uint64_t done_without_mpi(const std::string& text)
{
    std::uint64_t sum = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with(" puts and gets were done without MPI")) {
            sum += std::strtoull(line.c_str() + std::string_view("ucx-layout-mpi: ").size(), nullptr, 10);
        }
    }
    return sum;
}

TEST_P(mpi_program, puts_and_gets_copy_memory_of_their_target_that_is_shared)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const environment heap{{"LD_PRELOAD", with_heap(GetParam())}, {"UCX_LAYOUT_MPI_REPORT", "y"}, mpich_sleeps[0]};
    for (const int num_ranks : {2, 4}) {
        const auto ended = calls(num_ranks, num_ranks == 2 ? "3" : "1", {"one-sided"}, heap, seed_of_one_sided());
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
        EXPECT_GT(done_without_mpi(ended.err), 10u) << ended.output();
    }
    // Only memory that MPI allocates for a window, which some of the rounds have.
    auto empty_heap = heap;
    empty_heap.emplace_back("UCX_LAYOUT_HEAP_MIN", "inf");
    const auto allocated = calls(2, "12", {"put-lock", "get-flush", "put-flush-all"}, empty_heap);
    EXPECT_THAT(allocated.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_GT(done_without_mpi(allocated.err), 0u) << allocated.output();
    const auto into_window = calls(2, "4", {"get-into-window"}, heap);
    EXPECT_THAT(into_window.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_GT(done_without_mpi(into_window.err), 0u) << into_window.output();
    for (const auto& [name, value] :
         {std::pair("UCX_LAYOUT_MPI_ONE_PASS", "n"), {"UCX_LAYOUT_MPI_CALLS", "messages,pack,collectives"}}) {
        auto without = heap;
        without.emplace_back(name, value);
        const auto ended = calls(2, "1", {"put-fence"}, without);
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
        EXPECT_EQ(done_without_mpi(ended.err), 0u) << ended.output();
    }
}

// What arrives in memory of the window must be there when the call that completes it lets others on.
TEST_P(mpi_program, a_get_into_its_own_window_is_left_to_mpi)
{
    const auto ended = calls(2, "4", {"get-into-window"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_EQ(reported(ended.err, "copies"), 0u) << ended.output();
}

TEST_P(mpi_program, partitions_are_packed_when_ready_and_unpacked_when_they_arrive)
{
    const auto ended = calls(2, "3", {"partitioned"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_GT(reported(ended.err, "copies"), 4u) << ended.output();
}

// Other pages are inaccessible, or read-only; those of a report, too.
TEST_P(mpi_program, memory_that_mpi_neither_reads_nor_updates_is_not_touched)
{
    const std::string program = std::string(MPI_LAYOUT_BUILD) + "/mpi_untouched_calls_" + GetParam().programs;
    struct {
        int num_ranks;
        const char* engine;
        const char* report;
    } const ways[] = {{2, "auto", "y"}, {4, "auto", "n"}, {2, "windows", "n"}};
    for (const auto& way : ways) {
        if (way.engine == std::string("windows") && !GetParam().is_openmpi()) {
            continue; // this MPI gets windows anyway
        }
        const auto ended = run(GetParam(), way.num_ranks, GetParam().with_ucx, {program, std::to_string(run_seed())},
                               {{"UCX_LAYOUT_MPI_TYPES", "all"},
                                {"UCX_LAYOUT_MPI_ENGINE", way.engine},
                                {"UCX_LAYOUT_MPI_REPORT", way.report}});
        if (ended.output().find("this machine has other pages") != std::string::npos) {
            GTEST_SKIP() << "the program knows pages of 4 KB only";
        }
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
        if (way.report == std::string("y")) {
            EXPECT_GT(reported(ended.err, "messages"), 0u) << ended.output();
            EXPECT_GT(reported(ended.err, "copies"), 0u) << ended.output();
        }
    }
}

// Bytes, without what others have to give up.
std::uint64_t available_memory()
{
    std::ifstream lines("/proc/meminfo");
    std::uint64_t kilobytes = 0;
    for (std::string line; std::getline(lines, line);) {
        if (std::sscanf(line.c_str(), "MemAvailable: %lu kB", &kilobytes) == 1) {
            break;
        }
    }
    return kilobytes << 10;
}

TEST_P(mpi_program, a_message_may_be_longer_than_an_int_counts)
{
    if (GetParam().name == std::string("openmpi")) {
        GTEST_SKIP() << "this Open MPI has no calls with large counts";
    }
    if (available_memory() < (5ULL << 30)) {
        GTEST_SKIP() << "this needs 5 GB of free memory";
    }
    const auto ended = calls(2, "1", {"huge"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_THAT(ended.output(), HasSubstr("2 comparisons, 0 wrong"));
    EXPECT_EQ(reported(ended.err, "messages"), 2u) << ended.output();
}

TEST_P(mpi_program, sessions_alone_make_the_library_active)
{
    const auto ended = session_calls();
    if (lacks_sessions(ended)) {
        GTEST_SKIP() << "this MPI makes no communicators from sessions over UCX";
    }
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n0 wrong\n"));
    EXPECT_EQ(reported(ended.err, "messages"), 8u) << ended.output();
}

TEST_P(mpi_program, one_sided_operations_are_mpis_in_a_process_that_had_a_session_before_mpi_init)
{
    const auto ended = session_calls({"init"});
    if (lacks_sessions(ended)) {
        GTEST_SKIP() << "this MPI makes no communicators from sessions over UCX";
    }
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n0 wrong\n"));
    EXPECT_EQ(done_without_mpi(ended.err), 0u) << ended.output();
}

TEST_P(mpi_program, a_session_that_outlives_the_world_keeps_its_messages)
{
    const auto ended = session_calls({"outlive"});
    if (lacks_sessions(ended)) {
        GTEST_SKIP() << "this MPI makes no communicators from sessions over UCX";
    }
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n0 wrong\n"));
    EXPECT_EQ(reported(ended.err, "messages"), 16u) << ended.output();
}

TEST_P(mpi_program, fortran_programs_get_it_too)
{
    if (!GetParam().has_fortran) {
        GTEST_SKIP() << "no Fortran for this MPI";
    }
    for (const char* const program : {"/mpi_fortran_calls_", "/mpi_fortran08_calls_"}) {
        const auto ended =
            run(GetParam(), 2, GetParam().with_ucx, {std::string(MPI_LAYOUT_BUILD) + program + GetParam().programs},
                {{"UCX_LAYOUT_MPI_TYPES", "all"}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.out, HasSubstr("0 wrong\n0 wrong\n"));
        EXPECT_EQ(reported(ended.err, "messages"), 4u) << ended.output();
        // The broadcast is left to Open MPI, whose messages are layouts.
        EXPECT_EQ(reported(ended.err, "copies"), GetParam().is_openmpi() ? 2u : 4u) << ended.output();
    }
}

TEST_P(mpi_program, options_choose_calls_and_datatypes)
{
    const environment report{{"UCX_LAYOUT_MPI_REPORT", "y"}};
    const auto with = [&](const std::string& call, const char* name, const char* value) {
        auto all = report;
        all.emplace_back(name, value);
        return calls(2, "3", {call}, all, seed_right_in_mpi);
    };
    const auto no_messages = with("sendrecv", "UCX_LAYOUT_MPI_CALLS", "pack,collectives");
    EXPECT_EQ(reported(no_messages.err, "messages"), 0u) << no_messages.output();
    const auto no_collectives = with("alltoallw", "UCX_LAYOUT_MPI_CALLS", "messages,pack,onesided");
    EXPECT_EQ(reported(no_collectives.err, "copies"), 0u) << no_collectives.output();
    const auto no_one_sided = with("put-fence", "UCX_LAYOUT_MPI_CALLS", "messages,pack,collectives");
    EXPECT_EQ(reported(no_one_sided.err, "copies"), 0u) << no_one_sided.output();
    const auto no_packs = with("pack", "UCX_LAYOUT_MPI_CALLS", "messages");
    EXPECT_EQ(reported(no_packs.err, "copies"), 0u) << no_packs.output();
    const auto long_only =
        calls(2, "3", {"sendrecv"},
              {{"UCX_LAYOUT_MPI_REPORT", "y"}, {"UCX_LAYOUT_MPI_ENGINE", "windows"}, {"UCX_LAYOUT_MPI_MIN_SIZE", "1g"}},
              seed_right_in_mpi);
    EXPECT_EQ(reported(long_only.err, "messages"), 0u) << long_only.output();
    const auto off = with("sendrecv", "UCX_LAYOUT_MPI_ENABLE", "n");
    EXPECT_THAT(off.err, Not(HasSubstr("datatypes of rank")));
    const auto bad = with("sendrecv", "UCX_LAYOUT_MPI_CALLS", "everything");
    EXPECT_THAT(bad.err, HasSubstr("UCX_LAYOUT_MPI_CALLS=everything is not one of"));
    for (const auto& each : {no_messages, no_collectives, no_one_sided, no_packs, long_only, off, bad}) {
        EXPECT_THAT(each.output(), HasSubstr(" comparisons, 0 wrong"));
    }
}

TEST_P(mpi_program, ucx_has_no_windows_where_the_library_is_switched_off)
{
    const auto with = [&](const char* is_on) {
        return calls(
            2, "1", {"sendrecv"},
            {{"UCX_LAYOUT_MPI_ENABLE", is_on}, {"UCX_LAYOUT_MPI_ENGINE", "windows"}, {"UCX_LOG_LEVEL", "debug"}});
    };
    EXPECT_THAT(with("y").output(), HasSubstr("using lay_copy/layout"));
    EXPECT_THAT(with("n").output(), Not(HasSubstr("using lay_copy/layout")));
}

TEST_P(mpi_program, a_list_of_transports_without_ours_is_completed)
{
    const auto ended = calls(2, "2", {"isend-irecv"},
                             {{"UCX_TLS", "posix,self"},
                              {"UCX_LOG_LEVEL", "info"},
                              {"UCX_LAYOUT_MPI_ENGINE", "windows"},
                              {"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_THAT(ended.output(), HasSubstr("UCX_TLS=posix,self,lay_copy"));
    EXPECT_GT(reported(ended.err, "messages"), 0u) << ended.output();
}

// The two processes of the call "long" after commands of the shell that differ for the second one.
std::vector<std::string> with_commands(const mpi& chosen, const std::string& first, const std::string& second)
{
    const std::string choose =
        "if [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 ]; then " + first + "; else " + second + "; fi; ";
    return {"/bin/sh", "-c",  choose + R"(exec "$@")", "sh", calls_program(chosen), std::to_string(run_seed()),
            "1",       "long"};
}

// The bytes of a message are those that Open MPI would send.
TEST_P(mpi_program, a_process_without_the_library_is_a_peer_of_openmpi)
{
    if (!GetParam().is_openmpi()) {
        GTEST_SKIP() << "this MPI gets windows";
    }
    for (const auto& [first, second] : {std::pair("true", "unset LD_PRELOAD"), {"unset LD_PRELOAD", "true"}}) {
        const auto ended = run(GetParam(), 2, GetParam().with_ucx, with_commands(GetParam(), first, second));
        EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong"));
    }
}

// The one with the heap has windows, and sends by none of them.
TEST_P(mpi_program, a_process_with_the_heap_is_a_peer_of_one_without)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const std::string with = "export LD_PRELOAD=" + with_heap(GetParam());
    for (const auto& [first, second] : {std::pair(with, std::string("true")), {"true", with}}) {
        const auto ended = run(GetParam(), 2, GetParam().with_ucx, with_commands(GetParam(), first, second));
        EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong"));
        // The format of addresses that a user chose says nothing of windows.
        if (GetParam().is_openmpi()) {
            const auto chosen = run(GetParam(), 2, GetParam().with_ucx, with_commands(GetParam(), first, second),
                                    {{"UCX_ADDRESS_VERSION", "v2"}});
            EXPECT_THAT(chosen.output(), HasSubstr("3 comparisons, 0 wrong"));
        }
    }
}

// Each pair of commands is run by the two processes before the program.
void expect_one_sided_operations_of_mpi(const mpi& chosen,
                                        const std::vector<std::pair<std::string, std::string>>& commands)
{
    for (const auto& [first, second] : commands) {
        auto program     = with_commands(chosen, first, second);
        program.back()   = "put-fence";
        const auto ended = run(chosen, 2, chosen.with_ucx, program,
                               {{"LD_PRELOAD", with_heap(chosen)}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong")) << first << ", " << second;
        EXPECT_EQ(done_without_mpi(ended.err), 0u) << ended.output();
    }
}

// Not all of them do what needs all of them.
TEST_P(mpi_program, one_sided_operations_are_mpis_where_a_process_does_not_take_them)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const std::string command = "export UCX_LAYOUT_MPI_CALLS=messages";
    expect_one_sided_operations_of_mpi(GetParam(), {{command, "true"}, {"true", command}});
}

// Processes know whether others have windows by the format of addresses, which some of them have chosen here.
TEST_P(mpi_program, one_sided_operations_are_mpis_where_a_process_chose_the_format_of_addresses)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const std::string chosen = "export UCX_ADDRESS_VERSION=v2", disabled = chosen + " UCX_LAYOUT_MPI_ENABLE=n";
    expect_one_sided_operations_of_mpi(
        GetParam(), {{chosen, "true"}, {"true", chosen}, {chosen, chosen}, {disabled, "true"}, {"true", disabled}});
}

// What a process with windows would send by them never ends in one without.
TEST_P(mpi_program, nobody_has_windows_where_a_process_has_none)
{
    const std::string folder = testing::TempDir() + "mpi-none-" + GetParam().name;
    written(folder + "/ucx.conf", "UCX_TLS=^lay_copy\n");
    for (const std::string& command : {std::string("unset LD_PRELOAD"), std::string("export UCX_TLS=^lay_copy"),
                                       "export UCX_CONFIG_DIR=" + folder}) {
        for (const auto& [first, second] : {std::pair(command, std::string("true")), {"true", command}}) {
            const auto ended = run(GetParam(), 2, GetParam().with_ucx, with_commands(GetParam(), first, second),
                                   {{"UCX_LAYOUT_MPI_ENGINE", "windows"},
                                    {"UCX_LAYOUT_MPI_TYPES", "all"},
                                    {"UCX_LAYOUT_MPI_REPORT", "y"}});
            EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong")) << command;
            EXPECT_THAT(ended.err, HasSubstr("a process of this job has no windows")) << command;
            EXPECT_THAT(ended.err, Not(HasSubstr("datatypes of rank"))) << command;
        }
    }
}

// Two processes start a third one, which exchanges messages with the first of them.
class mpi_started_later : public mpi_program
{
protected:
    void SetUp() override
    {
        static std::map<std::string, bool> starts_processes; // by MPI
        const std::string name = GetParam().name;
        if (!starts_processes.contains(name)) {
            // Without the library, so that a fault of it is no reason to leave these out.
            starts_processes[name] = run_spawn("both", "at once", with_library, {{"LD_PRELOAD", sanitizer_library()}})
                                         .out.find("no process was started") == std::string::npos;
        }
        if (!starts_processes[name]) {
            GTEST_SKIP() << "this MPI starts no processes over UCX";
        }
    }

    ended_process run_spawn(const std::string& way, const std::string& first, const std::vector<std::string>& command,
                            const environment& more) const
    {
        std::vector<std::string> program{built("mpi_spawn_calls_") + GetParam().programs, way, first};
        program.insert(program.end(), command.begin(), command.end());
        environment all{{"UCX_LAYOUT_MPI_TYPES", "all"}, {"UCX_LAYOUT_MPI_REPORT", "y"}};
        all.insert(all.end(), more.begin(), more.end());
        return run(GetParam(), 2, GetParam().with_ucx, program, all);
    }

    // The third process has the library, like the others, or not.
    static const std::vector<std::string> with_library, without_library;
};

const std::vector<std::string> mpi_started_later::with_library{"/usr/bin/env"};
const std::vector<std::string> mpi_started_later::without_library{"/usr/bin/env", "-u", "LD_PRELOAD"};

constexpr const char* ways_of_child[]  = {"both", "sends", "receives"};
constexpr const char* before_a_child[] = {"exchange", "at once"};

TEST_P(mpi_started_later, without_the_library_is_a_peer_of_layouts)
{
    if (!GetParam().is_openmpi()) {
        GTEST_SKIP() << "this MPI gets windows";
    }
    for (const char* const way : ways_of_child) {
        for (const char* const first : before_a_child) {
            const auto ended = run_spawn(way, first, without_library, {});
            EXPECT_EQ(ended.status, 0) << way << first << ended.output();
            EXPECT_THAT(ended.out, HasSubstr("child: 0 wrong")) << way << first;
            EXPECT_THAT(ended.out, HasSubstr("parent: 0 wrong")) << way << first;
            EXPECT_GT(reported(ended.err, "messages"), 0u) << way << first << ended.output();
        }
    }
}

// Until it comes, the messages of the others go in one pass.
TEST_P(mpi_started_later, without_the_library_is_a_peer_of_those_with_a_heap)
{
    if (!GetParam().is_openmpi() || !has_heap()) {
        GTEST_SKIP() << "this MPI gets windows, or the heap is not built";
    }
    for (const char* const way : ways_of_child) {
        for (const char* const first : before_a_child) {
            const auto ended = run_spawn(way, first, without_library, {{"LD_PRELOAD", with_heap(GetParam())}});
            EXPECT_EQ(ended.status, 0) << way << first << ended.output();
            EXPECT_THAT(ended.out, HasSubstr("child: 0 wrong")) << way << first;
            EXPECT_THAT(ended.out, HasSubstr("parent: 0 wrong")) << way << first;
        }
    }
}

TEST_P(mpi_started_later, with_the_library_is_a_peer_of_windows)
{
    for (const char* const way : ways_of_child) {
        const auto ended = run_spawn(way, "exchange", with_library, {{"UCX_LAYOUT_MPI_ENGINE", "windows"}});
        EXPECT_EQ(ended.status, 0) << way << ended.output();
        EXPECT_THAT(ended.out, HasSubstr("child: 0 wrong")) << way;
        EXPECT_THAT(ended.out, HasSubstr("parent: 0 wrong")) << way;
        EXPECT_EQ(reported(ended.err, "left"), 0u) << way << ended.output();
        // Of the two among themselves, and of both sides of those with the third one.
        EXPECT_EQ(reported(ended.err, "messages"), way == std::string("both") ? 24u : 18u) << way << ended.output();
    }
}

// Windows may be on their way already, so it is too late to leave everything to MPI.
TEST_P(mpi_started_later, without_windows_is_refused_with_a_message)
{
    for (const char* const first : before_a_child) {
        const auto ended = run_spawn("both", first, without_library, {{"UCX_LAYOUT_MPI_ENGINE", "windows"}});
        EXPECT_NE(ended.status, 0) << first << ended.output();
        EXPECT_THAT(ended.output(), HasSubstr("parent: failed: ")) << first;
        EXPECT_THAT(ended.err, HasSubstr("a process of this job has no windows, but this one uses them")) << first;
        EXPECT_THAT(ended.output(), Not(HasSubstr("child: 0 wrong"))) << first;
    }
}

// UCX reads them, too.
TEST_P(mpi_program, options_of_a_configuration_file_count)
{
    const std::string folder = testing::TempDir() + "mpi-options-" + GetParam().name;
    const auto with_file     = [&](environment more) {
        more.emplace_back("UCX_CONFIG_DIR", folder);
        return calls(2, "1", {"long"}, more);
    };
    written(folder + "/ucx.conf", "UCX_LAYOUT_MPI_REPORT=y\nUCX_LAYOUT_MPI_ENGINE=windows\n"
                                  "UCX_LAYOUT_MPI_MIN_SIZE=inf\nUCX_TLS=posix,self\n");
    const auto none = with_file({});
    EXPECT_THAT(none.output(), HasSubstr("3 comparisons, 0 wrong"));
    EXPECT_THAT(none.err, HasSubstr("ucx-layout-mpi: datatypes of rank 0"));
    EXPECT_EQ(reported(none.err, "messages"), 0u) << none.output();
    // The environment comes first.
    const auto all = with_file({{"UCX_LAYOUT_MPI_MIN_SIZE", "auto"}, {"UCX_LOG_LEVEL", "info"}});
    EXPECT_THAT(all.output(), HasSubstr("3 comparisons, 0 wrong"));
    EXPECT_THAT(all.output(), HasSubstr("UCX_TLS=posix,self,lay_copy"));
    EXPECT_EQ(reported(all.err, "by CPU"), 6u << 20) << all.output();
    written(folder + "/ucx.conf", "UCX_LAYOUT_MPI_REPORT=y\nUCX_LAYOUT_MPI_ENABLE=n\n");
    const auto disabled = with_file({});
    EXPECT_THAT(disabled.output(), HasSubstr("3 comparisons, 0 wrong"));
    EXPECT_THAT(disabled.err, Not(HasSubstr("ucx-layout-mpi")));
}

TEST_P(mpi_program, the_cpu_copies_windows_in_shared_memory)
{
    const auto ended = calls(2, "1", {"long"}, {{"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong"));
    EXPECT_EQ(reported(ended.err, "by CPU"), 6u << 20) << ended.output();
}

// What a datatype leaves behind, it leaves a million times in a long job. MPICH 4.2.1 itself loses 64 bytes of each one
// in processes where bit 31 is set in the addresses of its heap.
TEST_P(mpi_program, memory_does_not_grow_with_the_number_of_datatypes)
{
    if (std::getenv("UCXL_SANITIZER_LIBRARY") != nullptr) {
        GTEST_SKIP() << "a sanitizer keeps freed memory";
    }
    for (const char* const engine : {"auto", "windows"}) {
        const auto ended =
            run(GetParam(), 2, GetParam().with_ucx,
                {std::string(MPI_LAYOUT_BUILD) + "/mpi_growth_calls_" + GetParam().programs, "5000"},
                {{"UCX_LAYOUT_MPI_ENGINE", engine}, {"UCX_LAYOUT_MPI_TYPES", "all"}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_GT(reported(ended.err, "messages"), 0u) << ended.output();
        std::istringstream lines(ended.out);
        long bytes = 0, processes = 0;
        for (std::string line; std::getline(lines, line); processes += 1) {
            ASSERT_EQ(std::sscanf(line.c_str(), "%ld bytes for each datatype", &bytes), 1) << ended.output();
            EXPECT_LT(bytes, 150) << engine;
        }
        EXPECT_EQ(processes, 2) << ended.output();
    }
}

TEST_P(mpi_program, requests_may_end_in_a_flush_and_in_finalize)
{
    const std::vector<std::string> alone{built("mpi_end_calls_") + GetParam().programs};
    for (const auto& program : {alone, {alone[0], "session"}}) {
        if (program.size() > 1 && !GetParam().is_openmpi()) {
            continue; // MPICH 4.2.1 itself ends MPI_Finalize by a null pointer
        }
        const auto ended = run(GetParam(), 2, GetParam().with_ucx, program,
                               {{"UCX_LAYOUT_MPI_TYPES", "all"}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_GT(reported(ended.err, "copies"), 0u) << ended.output();
        for (const char* const name : {"get: 0 wrong", "finalize: 0 wrong"}) {
            const auto first = ended.out.find(name);
            ASSERT_NE(first, std::string::npos) << ended.output();
            EXPECT_NE(ended.out.find(name, first + 1), std::string::npos) << ended.output();
        }
    }
}

// Where there are windows, UCX looks at the buffer of each message, and starts later.
TEST_P(mpi_program, has_windows_only_where_messages_may_go_by_them)
{
    const auto windows_with = [](const environment& more) {
        const auto ended =
            run(GetParam(), 2, GetParam().with_ucx,
                {std::string(MPI_LAYOUT_BUILD) + "/mpi_growth_calls_" + GetParam().programs, "16"}, more);
        EXPECT_EQ(ended.status, 0) << ended.output();
        const bool has = ended.out.contains("windows: yes");
        EXPECT_NE(has, ended.out.contains("windows: no")) << ended.output();
        return has;
    };
    const bool is_mpich = !GetParam().is_openmpi();
    EXPECT_EQ(windows_with({}), is_mpich);
    EXPECT_EQ(windows_with({{"UCX_TLS", "posix,cma,self"}}), is_mpich);
    EXPECT_TRUE(windows_with({{"UCX_LAYOUT_MPI_ENGINE", "windows"}}));
    EXPECT_TRUE(windows_with({{"UCX_TLS", "posix,cma,self,lay_copy"}}));
    if (has_heap()) {
        EXPECT_TRUE(windows_with({{"LD_PRELOAD", with_heap(GetParam())}}));
    }
}

// A job whose user left the windows out has layouts all the same, which need none.
TEST_P(mpi_program, layouts_need_no_windows)
{
    if (!GetParam().is_openmpi()) {
        GTEST_SKIP() << "this MPI gets windows";
    }
    const auto ended = calls(2, "1", {"long"}, {{"UCX_TLS", "^lay_copy"}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
    EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong"));
    EXPECT_GT(reported(ended.err, "messages"), 0u) << ended.output();
}

// Blocks of 256 bytes: Open MPI copies them as fast as windows do, but not as fast as a layout does in its place. MPICH
// does not.
TEST_P(mpi_program, what_mpi_moves_as_fast_is_left_to_it)
{
    for (const char* const engine : {"auto", "windows"}) {
        const auto ended = calls(
            2, "1", {"long"},
            {{"UCX_LAYOUT_MPI_REPORT", "y"}, {"UCX_LAYOUT_MPI_TYPES", "auto"}, {"UCX_LAYOUT_MPI_ENGINE", engine}});
        const bool is_left = GetParam().is_openmpi() && engine == std::string("windows");
        EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong"));
        EXPECT_EQ(reported(ended.err, "messages"), is_left ? 0u : 6u) << ended.output();
        EXPECT_EQ(reported(ended.err, "left"), is_left ? 6u : 0u) << ended.output();
    }
}

#ifdef SOFTHCA_RUN
// Runs the call "long" of both processes on the software device, with no other way between them.
std::pair<ended_process, nlohmann::json> run_on_device(const mpi& chosen, const environment& more)
{
    const std::string stats = testing::TempDir() + "mpi-stats-" + chosen.name + ".json";
    std::remove(stats.c_str());
    std::vector<std::string> arguments{"--stats", stats, "--", path_of(chosen.launcher[0])};
    arguments.insert(arguments.end(), chosen.launcher.begin() + 1, chosen.launcher.end());
    arguments.insert(arguments.end(), {"-n", "2"});
    arguments.insert(arguments.end(), chosen.with_ucx.begin(), chosen.with_ucx.end());
    const std::string preload = "LD_PRELOAD=" SOFTHCA_LIBRARY ":" + preload_of(chosen);
    arguments.insert(arguments.end(),
                     {"/usr/bin/env", preload, calls_program(chosen), std::to_string(run_seed()), "1", "long"});
    environment variables{{"LD_LIBRARY_PATH", libraries_of(chosen)},
                          {"UCX_TLS", "rc"},
                          {"UCX_LAYOUT_KEYS_SAME_HOST", "always"},
                          {"UCX_LAYOUT_MPI_REPORT", "y"}};
    if (const char* const sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY")) {
        // The launcher needs it for the device. The device notices doorbells by SIGSEGV.
        variables.emplace_back("LD_PRELOAD", sanitizer);
        variables.emplace_back("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0:handle_segv=0");
        variables.emplace_back("OMPI_MCA_memory", "^patcher");
    }
    variables.insert(variables.end(), more.begin(), more.end());
    auto ended = process(SOFTHCA_RUN, arguments, {.variables = variables}).wait(120s);
    std::ifstream file(stats);
    return {std::move(ended), nlohmann::json::parse(file, nullptr, false)};
}

// A network card follows the layout: the device moves the bytes, and no CPU does. The program compares all of them.
TEST_P(mpi_program, no_cpu_copies_a_byte_where_a_card_carries_windows)
{
    if (!ucx_has_network_cards()) {
        GTEST_SKIP() << "this UCX has no transports for network cards";
    }
    const auto [ended, counted] = run_on_device(GetParam(), {});
    EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong"));
    EXPECT_EQ(reported(ended.err, "messages"), 6u) << ended.output();
    EXPECT_EQ(reported(ended.err, "copies"), 0u) << ended.output();
    EXPECT_EQ(reported(ended.err, "left"), 0u) << ended.output();
    EXPECT_EQ(reported(ended.err, "by CPU"), 0u) << ended.output();
    ASSERT_TRUE(counted.is_object());
    EXPECT_GE(counted.at("bytes_moved").get<std::uint64_t>(), 3u << 20);
}

// What the test above would see if the CPU copied: the same device and program, without keys for windows.
TEST_P(mpi_program, the_cpu_copies_windows_that_a_card_has_no_keys_for)
{
    if (!ucx_has_network_cards()) {
        GTEST_SKIP() << "this UCX has no transports for network cards";
    }
    const auto [ended, counted] =
        run_on_device(GetParam(), {{"UCX_LAYOUT_KEYS_ENABLE", "n"}, {"UCX_LAYOUT_MPI_TYPES", "all"}});
    EXPECT_THAT(ended.output(), HasSubstr("3 comparisons, 0 wrong"));
    EXPECT_EQ(reported(ended.err, "messages"), 6u) << ended.output();
    EXPECT_EQ(reported(ended.err, "by CPU"), 6u << 20) << ended.output();
    ASSERT_TRUE(counted.is_object());
    EXPECT_GE(counted.at("bytes_moved").get<std::uint64_t>(), 3u << 20);
}
#endif

const environment logged{{"UCX_LOG_LEVEL", "info"}, {"UCX_LAYOUT_MPI_TYPES", "all"}};

// One call of two processes, with nothing more for the launcher than `launch`.
ended_process one_call(const mpi& chosen, const std::vector<std::string>& launch, const std::string& call,
                       environment more = {})
{
    more.insert(more.end(), logged.begin(), logged.end());
    return run(chosen, 2, launch, {calls_program(chosen), std::to_string(run_seed()), "2", call}, more);
}

// Open MPI by itself would want a network card.
TEST_P(mpi_program, whoever_asks_openmpi_for_ucx_gets_it_on_every_host)
{
    if (!GetParam().is_openmpi()) {
        GTEST_SKIP() << "this MPI uses UCX anyway";
    }
    const std::string home = testing::TempDir() + "mpi-home-" + GetParam().name;
    written(home + "/.openmpi/mca-params.conf", "pml = ucx\n");
    const std::string tuned                                       = written(home + "/tune", "--mca pml ucx\n");
    const std::pair<std::vector<std::string>, environment> ways[] = {{{"--mca", "pml", "ucx"}, {}},
                                                                     {{"--tune", tuned}, {}},
                                                                     {{}, {{"OMPI_MCA_pml", "ucx"}}},
                                                                     {{}, {{"HOME", home}}}};
    for (const auto& [launch, variables] : ways) {
        const auto ended = one_call(GetParam(), launch, "sendrecv", variables);
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
        EXPECT_THAT(ended.err, HasSubstr("datatypes are layouts"));
    }
    // Debian's parameter file leaves no component for one-sided operations.
    for (const std::vector<std::string>& launch : std::vector<std::vector<std::string>>{
             {"--mca", "pml", "ucx"}, {"--mca", "pml", "ucx", "--mca", "osc", "ucx"}}) {
        const auto ended = one_call(GetParam(), launch, "put-fence");
        EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    }
}

TEST_P(mpi_program, nobody_gets_ucx_from_openmpi_without_asking)
{
    if (!GetParam().is_openmpi()) {
        GTEST_SKIP() << "this MPI uses UCX anyway";
    }
    for (const std::vector<std::string>& launch : std::vector<std::vector<std::string>>{
             {"--mca", "btl", "self,sm"}, {"--mca", "pml", "^ucx"}, GetParam().without_ucx}) {
        const auto ended = one_call(GetParam(), launch, "sendrecv");
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.err, Not(HasSubstr("was set")));
    }
    for (const char* const name : {"pml_ucx_tls", "osc_ucx_tls", "opal_common_ucx_tls"}) {
        const auto ended =
            one_call(GetParam(), {"--mca", "pml", "ucx", "--mca", name, "a_transport_of_the_user"}, "long");
        EXPECT_THAT(ended.output(), Not(HasSubstr(" comparisons")));
        EXPECT_THAT(ended.err, Not(HasSubstr("=any was set")));
    }
}

// The other host is this one: what reaches it by the agent starts in an empty environment.
TEST_P(mpi_program, processes_of_other_hosts_get_the_library_from_openmpi_by_x)
{
    if (!GetParam().is_openmpi()) {
        GTEST_SKIP() << "this launcher passes all variables";
    }
    if (std::getenv("UCXL_SANITIZER_LIBRARY") != nullptr) {
        GTEST_SKIP() << "the processes would need the options of the sanitizer";
    }
    const std::string agent = written(testing::TempDir() + "mpi-agent-" + GetParam().name,
                                      "#!/bin/sh\nshift\nexec env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/ "
                                      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LD_LIBRARY_PATH=" +
                                          libraries_of(GetParam()) + R"( sh -c "$*")" + "\n");
    std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
    const std::vector<std::string> remote{"--mca",       "plm_ssh_agent", agent, "--host",
                                          "127.0.0.2:2", "--mca",         "pml", "ucx",
                                          "-x",          "UCX_LOG_LEVEL", "-x",  "UCX_LAYOUT_MPI_TYPES"};
    const auto without = one_call(GetParam(), remote, "long");
    EXPECT_THAT(without.err, Not(HasSubstr("datatypes are layouts")));
    auto passed = remote;
    passed.insert(passed.end(), {"-x", "LD_PRELOAD"});
    const auto ended = one_call(GetParam(), passed, "long");
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_THAT(ended.err, HasSubstr("datatypes are layouts"));
}

TEST_P(mpi_program, without_ucx_below_everything_is_left_to_mpi)
{
    if (GetParam().without_ucx.empty()) {
        GTEST_SKIP() << "this MPI has nothing but UCX";
    }
    const auto ended =
        run(GetParam(), 2, GetParam().without_ucx, {calls_program(GetParam()), std::to_string(seed_right_in_mpi), "1"},
            {{"UCX_LAYOUT_MPI_TYPES", "all"}, {"UCX_LOG_LEVEL", "info"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
    EXPECT_THAT(ended.err,
                HasSubstr("datatypes are left to MPI: Open MPI does not move messages by UCX, but by its pml ob1"));
}

TEST_P(mpi_program, a_process_without_mpi_does_not_notice_the_library)
{
    for (const char* const binding : {"", "1"}) {
        const auto ended =
            process("/bin/sh", {"-c", "echo still here"},
                    {.variables = variables_of(GetParam(), {{"LD_BIND_NOW", binding}, {"UCX_LAYOUT_MPI_REPORT", "y"}})})
                .wait();
        EXPECT_EQ(ended.status, 0);
        EXPECT_EQ(ended.out, "still here\n");
        EXPECT_EQ(ended.err, "");
    }
}

const std::vector<mpi>& installed()
{
    static const std::vector<mpi> all = [] {
        std::vector<mpi> found;
#ifdef HAVE_OPENMPI
        found.push_back(openmpi);
#endif
#ifdef HAVE_MPICH
        found.push_back(mpich);
#endif
#ifdef HAVE_OPENMPI_ABI
        found.push_back(with_abi(openmpi, "openmpi_abi", MPI_LAYOUT_BUILD "/mpi_abi/openmpi"));
#endif
#ifdef HAVE_MPICH_ABI
        found.push_back(with_abi(mpich, "mpich_abi", MPI_LAYOUT_BUILD "/mpi_abi/mpich"));
#endif
        return found;
    }();
    return all;
}

class mpi_by_its_handles : public mpi_program
{
protected:
    void SetUp() override
    {
        if (GetParam().programs != std::string(GetParam().name)) {
            GTEST_SKIP() << "these programs are compiled for handles of one MPI";
        }
    }

    // Of this MPI.
    std::string own(const std::string& name, const std::string& ending = {}) const
    {
        return built(name + "_" + GetParam().programs + ending);
    }

    ended_process run_program(const std::vector<std::string>& program, const environment& more = {}) const
    {
        environment all{{"UCX_LAYOUT_MPI_TYPES", "all"}, {"UCX_LAYOUT_MPI_REPORT", "y"}};
        all.insert(all.end(), more.begin(), more.end());
        return run(GetParam(), 2, GetParam().with_ucx, program, all);
    }

    // As Python does: the program knows nothing of MPI.
    ended_process run_plugin(const std::string& scope) const
    {
        return run_program({built("mpi_plugin_host"), own("mpi_exchange_plugin", ".so"), scope, "exchange_calls"});
    }

    // Of the collective calls of mpi_exchange_calls, which go to Open MPI as messages.
    unsigned num_copies() const { return GetParam().is_openmpi() ? 0 : 16; }

    ended_process run_with_tool(const std::string& preload) const
    {
        return run_program({"/usr/bin/env", "LD_PRELOAD=" + preload, own("mpi_exchange_calls")});
    }
};

TEST_P(mpi_by_its_handles, an_mpi_that_only_a_plugin_reaches_is_found)
{
    for (const char* const scope : {"local", "global"}) {
        const auto ended = run_plugin(scope);
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.out, HasSubstr("0 wrong\n0 wrong\n"));
        EXPECT_EQ(reported(ended.err, "messages"), 16u) << ended.output();
        EXPECT_EQ(reported(ended.err, "copies"), num_copies()) << ended.output();
    }
}

// Its calls do not come here, but those of its UCX do.
TEST_P(mpi_by_its_handles, a_plugin_that_prefers_its_own_functions_is_left_alone)
{
    if (std::getenv("UCXL_SANITIZER_LIBRARY") != nullptr) {
        GTEST_SKIP() << "a sanitizer refuses RTLD_DEEPBIND";
    }
    const auto ended = run_plugin("deepbind");
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n0 wrong\n"));
    EXPECT_THAT(ended.err, Not(HasSubstr("ucx-layout-mpi")));
}

TEST_P(mpi_by_its_handles, a_plugin_that_brings_ucx_and_no_mpi_is_left_alone)
{
    const bool has_sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY") != nullptr; // it refuses RTLD_DEEPBIND
    for (const char* const scope : {"local", has_sanitizer ? "local" : "deepbind", "global"}) {
        const auto ended = process(built("mpi_plugin_host"), {built("mpi_ucx_plugin.so"), scope, "ucx_calls"},
                                   {.variables = variables_of(GetParam(), {})})
                               .wait();
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_EQ(ended.out, "UCX works\n");
        EXPECT_EQ(ended.err, "");
    }
}

TEST_P(mpi_by_its_handles, python_finds_its_mpi)
{
    const auto is_there =
        process("/usr/bin/python3", {"-c", "from mpi4py import MPI; print(MPI.Get_library_version())"}).wait();
    if (is_there.status != 0 || (is_there.out.find("Open MPI") != std::string::npos) != GetParam().is_openmpi()) {
        GTEST_SKIP() << "no mpi4py for this MPI";
    }
    const auto ended = run_program({"/usr/bin/python3", "-c",
                                    "from mpi4py import MPI; from array import array; c = MPI.COMM_WORLD\n"
                                    "t = MPI.DOUBLE.Create_vector(1000, 2, 4).Commit()\n"
                                    "a, b = array('d', range(4000)), array('d', bytes(32000))\n"
                                    "c.Sendrecv([a, 1, t], 1 - c.rank, 0, [b, 1, t], 1 - c.rank, 0)\n"
                                    "exit(any(b[i] != (i if i % 4 < 2 else 0) for i in range(4000)))"});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_EQ(reported(ended.err, "messages"), 4u) << ended.output();
}

// The tool sees its calls, and what arrives is unpacked.
TEST_P(mpi_by_its_handles, a_tool_and_the_library_see_the_calls_of_the_program)
{
    const std::string tool = own("mpi_tool", ".so"), library = preload_of(GetParam());
    const auto inside = run_program({own("mpi_tool_inside")});
    const auto before = run_with_tool(tool + ":" + library);
    const auto behind = run_with_tool(library + ":" + tool);
    for (const auto* const ended : {&inside, &before, &behind}) {
        EXPECT_EQ(ended->status, 0) << ended->output();
        EXPECT_THAT(ended->out, HasSubstr("0 wrong\n"));
        EXPECT_THAT(ended->out, HasSubstr("the tool saw 4 waits\n"));
        EXPECT_EQ(reported(ended->err, "messages"), 16u) << ended->output();
        EXPECT_EQ(reported(ended->err, "copies"), num_copies()) << ended->output();
    }
}

// It hides the end of operations, so their starts are not taken, and that is said.
TEST_P(mpi_by_its_handles, calls_whose_end_a_tool_hides_are_left_to_mpi)
{
    const auto ended = run_with_tool(own("mpi_tool_by_dlsym", ".so") + ":" + preload_of(GetParam()));
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n"));
    EXPECT_THAT(ended.out, HasSubstr("the tool saw 4 waits\n"));
    EXPECT_THAT(ended.err, HasSubstr("MPI_Wait of " + own("mpi_tool_by_dlsym", ".so") + " stands before this library"));
    EXPECT_EQ(reported(ended.err, "copies"), 0u) << ended.output();
}

// Of the report: datatype, messages, and bytes that the CPU copied from or into windows.
std::uint64_t bytes_by_cpu(const std::string& report, const std::string& name)
{
    std::uint64_t sum = 0;
    const std::regex row("(^|\n)" + name + " +\\d+ +\\d+ +\\d+ +0 +\\d+ +(\\d+) ");
    for (auto found = std::sregex_iterator(report.begin(), report.end(), row); found != std::sregex_iterator();
         ++found) {
        sum += std::stoull((*found)[2]);
    }
    return sum;
}

// Of no elements the datatype may be none, and MPI must not be asked about it.
TEST_P(mpi_by_its_handles, empty_blocks_need_no_datatypes)
{
    const auto ended = run_program({own("mpi_rare_calls"), "empty"});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n"));
}

// Nobody knows what arrived for a call that failed, and not all calls say that it has.
TEST_P(mpi_by_its_handles, collective_calls_that_fail_write_no_bytes_of_other_calls)
{
    const auto ended = run_program({own("mpi_rare_calls"), "failed"});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n"));
    if (GetParam().is_openmpi()) { // MPICH 4.2.1 says that they have not failed
        EXPECT_THAT(ended.out, AllOf(HasSubstr("failed\n"), HasSubstr("failed persistent\n")));
    }
}

// Of these requests the library waits for some first.
TEST_P(mpi_by_its_handles, a_wait_for_all_takes_requests_of_gets_and_refuses_no_array)
{
    const auto ended = run_program({own("mpi_rare_calls"), "waitall"});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n"));
    EXPECT_GT(reported(ended.err, "copies"), 0u) << ended.output();
}

// What ends later than the call that failed is received by the next one.
TEST_P(mpi_by_its_handles, a_persistent_call_that_is_pending_when_another_request_fails_gets_its_bytes)
{
    const auto ended = run_program({own("mpi_rare_calls"), "pending"});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, AllOf(HasSubstr("0 wrong\n"), ContainsRegex("[1-9][0-9]* pending\n")));
}

// MPI ends what they have freed when it ends itself, and needs the windows until then.
class mpi_end_calls : public mpi_by_its_handles
{
protected:
    // Without the heap and with it.
    std::vector<ended_process> end_calls(const std::string& mode) const
    {
        std::vector<std::string> preloads{preload_of(GetParam())};
        if (has_heap()) {
            preloads.push_back(with_heap(GetParam()));
        }
        std::vector<ended_process> all;
        for (const std::string& preload : preloads) {
            all.push_back(run_program({own("mpi_end_calls"), mode},
                                      {{"LD_PRELOAD", preload}, {"UCX_LAYOUT_MPI_ENGINE", "windows"}}));
            EXPECT_EQ(all.back().status, 0) << all.back().output();
            EXPECT_GT(reported(all.back().err, "messages"), 0u) << all.back().output();
        }
        return all;
    }
};

TEST_P(mpi_end_calls, requests_that_are_freed_while_they_run_bring_the_right_bytes)
{
    for (const auto& ended : end_calls("freed")) {
        for (const char* const message : {"message 0: 0 wrong", "message 1: 0 wrong", "message 2: 0 wrong"}) {
            EXPECT_THAT(ended.out, HasSubstr(message)) << ended.err;
        }
    }
}

TEST_P(mpi_end_calls, a_freed_receive_gets_what_is_sent_while_mpi_ends)
{
    for (const char* const mode : {"late", "both"}) {
        for (const auto& ended : end_calls(mode)) {
            EXPECT_THAT(ended.out, HasSubstr("message 0: 0 wrong")) << mode << ended.err;
        }
    }
}

TEST_P(mpi_end_calls, freed_requests_that_nobody_matches_do_not_keep_mpi_from_ending)
{
    end_calls("unmatched");
}

TEST_P(mpi_end_calls, a_freed_receive_that_fails_does_not_end_the_job)
{
    end_calls("truncated");
}

// Runs mpi_long_calls, compares, and returns the reports.
class mpi_long_messages : public mpi_by_its_handles
{
protected:
    std::string long_calls(const std::vector<std::string>& arguments, const std::string& preload,
                           const environment& more) const
    {
        environment all{{"LD_PRELOAD", preload}, {"UCX_LAYOUT_MPI_REPORT", "y"}, {"UCX_LAYOUT_MPI_TYPES", "all"}};
        all.insert(all.end(), more.begin(), more.end());
        std::vector<std::string> program{own("mpi_long_calls")};
        program.insert(program.end(), arguments.begin(), arguments.end());
        const auto ended = run(GetParam(), 2, GetParam().with_ucx, program, all);
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.out, HasSubstr(" comparisons, 0 wrong"));
        return ended.err;
    }
};

TEST_P(mpi_long_messages, in_static_arrays_go_in_one_pass_if_these_are_shared)
{
    const environment shared{{"UCX_LAYOUT_MPI_STATIC_ARRAYS", "y"}, {"UCX_LAYOUT_MPI_STATUS", "y"}};
    const std::string with = long_calls({"6", "static"}, preload_of(GetParam()), shared);
    EXPECT_GT(bytes_by_cpu(with, "MPI_DOUBLE"), 0u) << with;
    EXPECT_THAT(with, HasSubstr(", with 16 MB of static arrays in shared memory\n"));
    EXPECT_THAT(long_calls({"2", "static"}, preload_of(GetParam()), {}), Not(HasSubstr("MPI_DOUBLE")));
}

TEST_P(mpi_long_messages, in_the_heap_go_in_one_pass_also_contiguous_ones)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const std::string with = long_calls({}, with_heap(GetParam()), {});
    EXPECT_GT(bytes_by_cpu(with, "MPI_DOUBLE"), 0u) << with;
    EXPECT_GT(bytes_by_cpu(with, "MPI_CHAR"), 0u) << with;
    // Without the heap, or if it is not wanted, contiguous messages are MPI's.
    EXPECT_THAT(long_calls({"2"}, preload_of(GetParam()), {}), Not(HasSubstr("MPI_DOUBLE")));
    EXPECT_THAT(long_calls({"2"}, with_heap(GetParam()), {{"UCX_LAYOUT_MPI_ONE_PASS", "n"}}),
                Not(HasSubstr("MPI_DOUBLE")));
}

// MPI's own datatypes are variables of its library, or of the program that refers to them.
TEST_P(mpi_long_messages, of_a_program_that_uses_one_datatype_go_in_one_pass)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    for (const auto& [program, type] :
         {std::pair{"mpi_one_type_calls", "MPI_DOUBLE"}, {"mpi_one_complex_type_calls", "MPI_C_DOUBLE_COMPLEX"}}) {
        const auto ended = run(GetParam(), 2, GetParam().with_ucx, {own(program)},
                               {{"LD_PRELOAD", with_heap(GetParam())}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.out, HasSubstr("0 wrong\n"));
        EXPECT_GT(bytes_by_cpu(ended.err, type), 0u) << ended.err;
    }
}

// What a process sends to itself is no message, and is copied by the library.
TEST_P(mpi_long_messages, of_collective_calls_in_the_heap_go_in_one_pass)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const std::string with = long_calls({"3", "collective"}, with_heap(GetParam()), {});
    EXPECT_GT(bytes_by_cpu(with, "MPI_DOUBLE"), 0u) << with;
    // Two samples are long enough. A side in the heap has 2 messages of a broadcast in 2 calls, and 7 others or more.
    EXPECT_GE(reported(with, "messages"), 2u * 2 * 9) << with;
    const std::string left =
        long_calls({"3", "collective"}, with_heap(GetParam()), {{"UCX_LAYOUT_MPI_CALLS", "messages"}});
    EXPECT_THAT(left, Not(HasSubstr("MPI_DOUBLE")));
}

// Several blocks a side, of which some are short or empty.
TEST_P(mpi_long_messages, of_random_collective_calls_bring_the_right_bytes)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    for (const int processes : {2, 4}) {
        const auto ended = run(GetParam(), processes, GetParam().with_ucx,
                               {own("mpi_long_collectives"), std::to_string(run_seed()), "30"},
                               {{"LD_PRELOAD", with_heap(GetParam())}, {"UCX_LAYOUT_MPI_REPORT", "y"}});
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.out, HasSubstr("30 comparisons, 0 wrong\n"));
        EXPECT_GT(reported(ended.err, "messages"), 0u) << ended.output();
    }
}

// Else UCX would look for each buffer among the windows. Datatypes are no memory, and windows have types of their own.
TEST_P(mpi_long_messages, ucx_is_told_what_memory_is_no_window)
{
    const std::string tool       = built("mpi_ucx_tool.so");
    const auto messages_of_first = [&](const std::string& samples, const std::string& preload) {
        const auto ended = run(GetParam(), 2, GetParam().with_ucx, {own("mpi_long_calls"), samples},
                               {{"LD_PRELOAD", preload + ":" + tool}});
        EXPECT_EQ(ended.status, 0) << ended.output();
        EXPECT_THAT(ended.out, HasSubstr(" comparisons, 0 wrong"));
        return ended.out;
    };
    // Without the heap Open MPI has no windows.
    const bool has_windows = !GetParam().is_openmpi();
    EXPECT_THAT(messages_of_first("1", preload_of(GetParam())),
                HasSubstr(has_windows ? "of some messages memory is told" : "of no messages memory is told"));
    if (has_heap()) {
        EXPECT_THAT(messages_of_first("3", with_heap(GetParam())), HasSubstr("of some messages memory is told"));
    }
}

// It copies blocks through memory of its own.
TEST_P(mpi_long_messages, of_collective_calls_are_left_to_other_components_of_openmpi)
{
    if (!has_heap() || !GetParam().is_openmpi()) {
        GTEST_SKIP() << "this needs the heap and components of Open MPI";
    }
    const std::string with =
        long_calls({"3", "collective"}, with_heap(GetParam()), {{"OMPI_MCA_coll_sm_priority", "100"}});
    EXPECT_THAT(with, Not(HasSubstr("MPI_DOUBLE")));
}

// More than there are windows, so that windows are needed for other buffers.
TEST_P(mpi_long_messages, go_in_one_pass_after_messages_from_other_memory)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const auto ended = run_program({own("mpi_rare_calls"), "places"},
                                   {{"LD_PRELOAD", with_heap(GetParam())}, {"UCX_LAYOUT_MPI_ENGINE", "windows"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr("0 wrong\n"));
    EXPECT_GT(bytes_by_cpu(ended.err, "MPI_BYTE"), 0u) << ended.err;
}

// What the heap cannot share is sent as without it.
TEST_P(mpi_long_messages, are_left_where_windows_are_not_direct)
{
    if (!has_heap()) {
        GTEST_SKIP() << "the heap is not built";
    }
    const auto ended = run(
        GetParam(), 2, GetParam().with_ucx, {own("mpi_long_calls"), "6"},
        {{"LD_PRELOAD", with_heap(GetParam())}, {"UCX_LAYOUT_MPI_REPORT", "y"}, {"UCX_LAYOUT_DIRECT_SHM_MIN", "inf"}});
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_THAT(ended.out, HasSubstr(" comparisons, 0 wrong"));
    EXPECT_EQ(bytes_by_cpu(ended.err, "MPI_DOUBLE"), 0u) << ended.err;
}

TEST(mpi_library, one_for_other_handles_stays_out_and_says_so)
{
    int pairs = 0;
    for (const mpi& program : installed()) {
        for (const mpi& other : installed()) {
            if (std::string(program.library) == other.library) {
                continue;
            }
            const auto ended = run(program, 2, program.with_ucx,
                                   {"/usr/bin/env", "LD_PRELOAD=" + preload_of(other), calls_program(program),
                                    std::to_string(seed_right_in_mpi), "1", "sendrecv"});
            EXPECT_EQ(ended.status, 0) << ended.output();
            EXPECT_THAT(ended.output(), HasSubstr(" comparisons, 0 wrong"));
            EXPECT_THAT(ended.err, HasSubstr(std::string(other.library) + " is for another MPI"));
            ++pairs;
        }
    }
    if (pairs == 0) {
        GTEST_SKIP() << "this needs several MPIs";
    }
}

INSTANTIATE_TEST_SUITE_P(, mpi_program, testing::ValuesIn(installed()),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(, mpi_started_later, testing::ValuesIn(installed()),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(, mpi_by_its_handles, testing::ValuesIn(installed()),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(, mpi_end_calls, testing::ValuesIn(installed()),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(, mpi_long_messages, testing::ValuesIn(installed()),
                         [](const auto& each) { return std::string(each.param.name); });

} // namespace

} // namespace ucxl::test
