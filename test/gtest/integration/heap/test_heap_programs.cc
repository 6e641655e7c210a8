// Programs that nobody of us wrote, or that are compiled as users do, with the heap preloaded: what they print does not
// change, and their large memory is in the heap.
#include "support/process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <unistd.h>

namespace
{

using namespace std::chrono_literals;
using ucxl::test::ended_process;
using ucxl::test::environment;
using ucxl::test::process;
using ucxl::test::program_path;

ended_process shell(const std::string& line, const environment& variables = {})
{
    return process("/bin/sh", {"-c", line}, {.variables = variables, .without_ucx_options = true}).wait(120s);
}

bool has_command(const std::string& name)
{
    return shell("command -v " + name).status == 0;
}

const environment with_heap = {{"LD_PRELOAD", HEAP_LIBRARY}, {"UCX_LAYOUT_HEAP_MIN", "32k"}};

// As it is, and with the heap. The shell and all that it starts have it.
void expect_same(const std::string& line)
{
    const ended_process plain = shell(line), heap = shell(line, with_heap);
    EXPECT_EQ(plain.status, 0) << plain.output();
    EXPECT_EQ(heap.status, 0) << heap.output();
    EXPECT_EQ(heap.err, plain.err);
    EXPECT_TRUE(heap.out == plain.out) << line << " printed something else: " << heap.out.substr(0, 500);
}

class heap_programs : public testing::Test
{
protected:
    void SetUp() override
    {
        std::string name = testing::TempDir() + "heap_XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        _folder = name;
    }
    void TearDown() override { std::filesystem::remove_all(_folder); }

    std::string file(const std::string& name) const { return (_folder / name).string(); }
    std::string written(const std::string& name, const std::string& text) const
    {
        std::ofstream(file(name)) << text;
        return file(name);
    }

private:
    std::filesystem::path _folder;
};

TEST_F(heap_programs, sort_and_compress_as_without_it)
{
    const std::string lines = file("lines");
    ASSERT_EQ(shell("seq 1 300000 | sed 's/\\(.*\\)\\(...\\)/\\2 line \\1/' > " + lines).status, 0);
    expect_same("LC_ALL=C sort -S 50M --parallel=2 " + lines + " | cksum");
    expect_same("gzip -9 -n -c " + lines + " | cksum");
    if (has_command("xz")) {
        expect_same("xz -T2 -c " + lines + " | cksum");
    }
}

TEST_F(heap_programs, python_computes_and_forks_as_without_it)
{
    const std::string script = written("script.py", R"(
import os, sys
big = bytearray(range(256)) * 40000
shared = any("memfd:ucx_layout_heap" in line for line in open("/proc/self/maps"))
assert shared == ("LD_PRELOAD" in os.environ), shared
child = os.fork()
if child == 0:
    big[:] = bytes(len(big))
    os._exit(big[12345])
big[0] = 9
assert os.waitpid(child, 0)[1] == 0
print(sum(big[::7]), len({str(i): [i] * 9 for i in range(100000)}), os.popen("echo piped").read())
)");
    expect_same("python3 " + script);
}

TEST_F(heap_programs, numpy_computes_as_without_it_and_has_its_arrays_there)
{
    if (shell("python3 -c 'import numpy'").status != 0) {
        GTEST_SKIP() << "no NumPy";
    }
    const std::string script = written("script.py", R"(
import os
import numpy as np
a = np.arange(1.0, 500001.0)
spans = [line.split()[0].split("-") for line in open("/proc/self/maps") if "memfd:ucx_layout_heap" in line]
inside = any(int(first, 16) <= a.ctypes.data < int(last, 16) for first, last in spans)
assert inside == ("LD_PRELOAD" in os.environ), inside
for _ in range(20):
    a = np.sqrt(a * a + 1) - 0.5 * np.roll(a, 1) / a
m = np.arange(90000.0).reshape(300, 300) % 97
print(repr(float(a.sum())), repr(float((m @ m.T)[::7].sum())), repr(float(np.sort(a[::-1])[1234])))
)");
    expect_same("OPENBLAS_NUM_THREADS=1 python3 " + script);
}

TEST_F(heap_programs, fortran_allocates_there)
{
    const std::string compiler = has_command("gfortran") ? "gfortran" : "gfortran-14";
    if (!has_command(compiler)) {
        GTEST_SKIP() << "no gfortran";
    }
    const std::string source = written("program.f90", R"(
program columns
    implicit none
    real(8), allocatable :: matrix(:, :), grown(:)
    character(200) :: line
    integer :: i, unit, state
    logical :: is_there
    allocate (matrix(1000, 500))
    do i = 1, 500
        matrix(:, i) = i
    end do
    grown = [matrix(1, :)]
    do i = 1, 10
        grown = [grown, grown]
    end do
    is_there = .false.
    open (newunit=unit, file='/proc/self/maps', action='read')
    do
        read (unit, '(a)', iostat=state) line
        if (state /= 0) exit
        is_there = is_there .or. index(line, 'memfd:ucx_layout_heap') > 0
    end do
    call get_environment_variable('LD_PRELOAD', line)
    if (is_there .neqv. line /= '') error stop 'other memory'
    deallocate (matrix)
    print *, sum(grown), size(grown)
end program
)");
    ASSERT_EQ(shell(compiler + " -o " + file("program") + " " + source).status, 0);
    expect_same(file("program"));
}

// Libraries that a program is linked with are initialised before what it preloads, as a rule. Handlers that they
// register then run while the heap is held, and before the child has its copy.
TEST_F(heap_programs, libraries_allocate_and_write_in_their_handlers_of_fork)
{
    const std::string compiler = has_command("gcc") ? "gcc" : "gcc-14";
    if (!has_command(compiler)) {
        GTEST_SKIP() << "no C compiler";
    }
    const std::string library = written("library.c", R"(
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
char* block;
static char* freed;
static void before(void) { freed = memset(malloc(1 << 20), 3, 1 << 20); }
static void after(void) { free(freed); }
static void in_child(void) { memset(block, 2, 1 << 20); free(freed); }
__attribute__((constructor)) static void begin(void) { pthread_atfork(before, after, in_child); }
)");
    const std::string program = written("program.c", R"(
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char* block;
int main(void)
{
    int status = 1;
    block = memset(malloc(1 << 20), 1, 1 << 20);
    const pid_t child = fork();
    if (child == 0) {
        _exit(block[0] == 2 && block[99999] == 2 ? 0 : 1);
    }
    alarm(20);
    waitpid(child, &status, 0);
    return status == 0 && block[0] == 1 && block[99999] == 1 ? 0 : 1;
}
)");
    ASSERT_EQ(shell(compiler + " -shared -fPIC -o " + file("liblibrary.so") + " " + library).status, 0);
    ASSERT_EQ(shell(compiler + " -o " + file("program") + " " + program + " " + file("liblibrary.so") + " -Wl,-rpath," +
                    file(""))
                  .status,
              0);
    expect_same(file("program"));
}

#if defined(HAVE_OPENMPI) || defined(HAVE_MPICH)
// The table of libmpi_layout says what the CPU of a process has copied. In one pass, the receiver's copies all.
void expect_one_pass(const std::string& launch, const std::string& mpi)
{
    const std::string folder  = std::filesystem::path(HEAP_LIBRARY).parent_path();
    const std::string library = folder + "/libmpi_layout_" + mpi + ".so";
    const std::string program = " UCX_LAYOUT_MPI_REPORT=y " + program_path("heap_mpi_columns_" + mpi);
    const std::regex row("vector\\) +1048576 +16384 +50 +0 +52428800 +(\\d+) ");
    for (const bool has_heap : {false, true}) {
        const ended_process ended =
            shell(launch + "LD_PRELOAD=" + (has_heap ? HEAP_LIBRARY ":" : "") + library + program);
        const std::string all = ended.output();
        EXPECT_EQ(ended.status, 0) << all;
        EXPECT_NE(all.find("0 wrong bytes\n"), std::string::npos) << all;
        std::vector<std::string> copied;
        for (auto found = std::sregex_iterator(all.begin(), all.end(), row); found != std::sregex_iterator(); ++found) {
            copied.push_back((*found)[1]);
        }
        std::ranges::sort(copied);
        const std::vector<std::string> by_both{"52428800", "52428800"}, by_one{"0", "52428800"};
        EXPECT_EQ(copied, has_heap ? by_one : by_both) << all;
    }
}
#endif

#ifdef HAVE_OPENMPI
TEST_F(heap_programs, messages_of_open_mpi_go_in_one_pass)
{
    expect_one_pass("mpirun.openmpi --allow-run-as-root --bind-to none --oversubscribe --mca pml ucx -n 2 env "
                    "UCX_LAYOUT_MPI_ENGINE=windows ",
                    "openmpi");
}
#endif

#ifdef HAVE_MPICH
TEST_F(heap_programs, messages_of_mpich_go_in_one_pass)
{
    expect_one_pass("mpiexec.mpich -n 2 env ", "mpich");
}
#endif

} // namespace
