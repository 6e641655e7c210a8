#include "child.h"

#include <array>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::test
{

namespace
{

[[noreturn]] void become(const environment_changes& environment, const std::vector<std::string>& arguments, int output)
{
    for (const auto& [name, value] : environment) {
        setenv(name.c_str(), value.c_str(), 1);
    }
    unsetenv("GTEST_OUTPUT"); // the report is the parent's
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    std::vector<char*> argv{const_cast<char*>("child")};
    for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    execv("/proc/self/exe", argv.data());
    _exit(127);
}

} // namespace

child_result run_child(const environment_changes& environment, const std::vector<std::string>& arguments)
{
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
        return {127, "no pipe"};
    }
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become(environment, arguments, ends[1]);
    }
    close(ends[1]);
    child_result result{};
    std::array<char, 4096> some;
    for (ssize_t length = 0; (length = read(ends[0], some.data(), some.size())) > 0;) {
        result.output.append(some.data(), static_cast<std::size_t>(length));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
    return result;
}

} // namespace ucxl::test
