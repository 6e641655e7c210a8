#include "real_process.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::softhca::test
{

real_process::real_process(const std::function<void(real_process&)>& body)
{
    EXPECT_EQ(::pipe(_up), 0);
    EXPECT_EQ(::pipe(_down), 0);
    _id = ::fork();
    if (_id == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(_up[0]);
        ::close(_down[1]);
        body(*this);
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(_up[1]);
    ::close(_down[0]);
    char byte = 0;
    (void)!::read(_up[0], &byte, 1);
}

real_process::~real_process()
{
    if (_id > 0) {
        kill();
    }
    ::close(_up[0]);
    ::close(_down[1]);
}

void real_process::ready()
{
    (void)!::write(_up[1], "", 1);
}

void real_process::wait()
{
    char byte = 0;
    (void)!::read(_down[0], &byte, 1);
}

void real_process::go_on()
{
    (void)!::write(_down[1], "", 1);
}

void real_process::kill()
{
    ::kill(_id, SIGKILL);
    join();
}

int real_process::join()
{
    int status = 0;
    ::waitpid(_id, &status, 0);
    _id = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void give_up_privileges()
{
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
    ASSERT_EQ(::syscall(SYS_capset, &header, none.data()), 0);
}

void* shared_pages(std::size_t bytes)
{
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    return pages;
}

} // namespace ucxl::softhca::test
