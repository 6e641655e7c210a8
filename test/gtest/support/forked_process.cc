#include "forked_process.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace ucxl::test
{

forked_process::forked_process(const std::function<void(forked_process&)>& body)
{
    if (::pipe2(_up, O_CLOEXEC) != 0 || ::pipe2(_down, O_CLOEXEC) != 0 || (_id = ::fork()) < 0) {
        throw std::system_error(errno, std::generic_category(), "starting a process");
    }
    if (_id == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(_up[0]);
        ::close(_down[1]);
        try {
            body(*this);
        } catch (const std::exception& failure) { // the caller's frames are the parent's
            ADD_FAILURE() << failure.what();
        }
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(_up[1]);
    ::close(_down[0]);
    char byte = 0;
    (void)!::read(_up[0], &byte, 1);
}

forked_process::~forked_process()
{
    if (_id > 0) {
        kill();
    }
    ::close(_up[0]);
    ::close(_down[1]);
}

void forked_process::ready()
{
    (void)!::write(_up[1], "", 1);
}

void forked_process::wait()
{
    char byte = 0;
    (void)!::read(_down[0], &byte, 1);
}

void forked_process::go_on()
{
    (void)!::write(_down[1], "", 1);
}

void forked_process::kill()
{
    ::kill(_id, SIGKILL);
    join();
}

int forked_process::join()
{
    int status = 0;
    ::waitpid(_id, &status, 0);
    _id = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

testing::AssertionResult holds_in_child(const std::function<bool()>& body)
{
    forked_process child([&body](forked_process&) {
        ::alarm(20);
        ::_exit(body() ? 0 : 1);
    });
    const int status = child.join();
    return status == 0 ? testing::AssertionSuccess()
                       : testing::AssertionFailure() << "the child ended with status " << status;
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
    if (pages == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), "mmap");
    }
    return pages;
}

} // namespace ucxl::test
