#include "worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <system_error>

namespace ucxl::bench
{

worker::worker(const std::vector<std::string>& command) : _name(command[0])
{
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    std::vector<char*> words;
    for (const std::string& word : command) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    _process = fork();
    if (_process == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        execvp(words[0], words.data());
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    _to   = fdopen(input[1], "w");
    _from = fdopen(output[0], "r");
    if (_process < 0 || _to == nullptr || _from == nullptr) {
        throw std::system_error(errno, std::generic_category(), _name);
    }
}

worker::~worker()
{
    std::fclose(_to);
    waitpid(_process, nullptr, 0);
    std::fclose(_from);
}

double worker::ask(const std::string& line)
{
    double answer = 0;
    if (std::fprintf(_to, "%s\n", line.c_str()) < 0 || std::fflush(_to) != 0 ||
        std::fscanf(_from, "%lf", &answer) != 1) {
        throw std::runtime_error(_name + " has ended");
    }
    return answer;
}

} // namespace ucxl::bench
