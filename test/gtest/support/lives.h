// The same program again and again, each time on a software device of its own with another fault (SOFTHCA_FAULT). It
// starts once, and each life is a copy of that process from before it opened a device: libraries take longer to start
// than most lives. Example:
//     if (UCXL_CHILD is "pool_lives") { return live_with_each(pool_life, argc - 1, argv + 1); }       // in main()
//     for (const life& one : lives_with("pool_lives", {"command,first=1", "command,first=2"})) { ... } // in a test
#pragma once

#include "process.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ucxl::test
{

// Prints the status of each life behind what it printed, as "= 7".
inline int live_with_each(int (*live)(), int count, char** faults)
{
    for (int i = 0; i < count; ++i) {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) {
            setenv("SOFTHCA_FAULT", faults[i], 1);
            const int status = live();
            std::fflush(nullptr);
            _exit(status);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) {
            return 1;
        }
        std::printf("= %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return 0;
}

struct life {
    int status = -1; // 128 + N when signal N ended it
    std::string output{};
};

// One for each fault. `role` is the UCXL_CHILD of this program that calls live_with_each().
inline std::vector<life> lives_with(const std::string& role, const std::vector<std::string>& faults,
                                    const environment& more = {})
{
    environment variables{{"UCXL_CHILD", role}, {"UCX_LOG_LEVEL", "fatal"}};
    variables.insert(variables.end(), more.begin(), more.end());
    // One stream, so that what a life printed stands before its status.
    const ended_process ended =
        process(program_path(), faults, {.variables = variables, .has_one_stream = true}).wait();
    std::vector<life> lives(1);
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("= ")) {
            lives.back().status = std::stoi(line.substr(2));
            lives.emplace_back();
        } else {
            lives.back().output += line + "\n";
        }
    }
    lives.pop_back();
    EXPECT_EQ(ended.status, 0) << ended.output();
    EXPECT_EQ(lives.size(), faults.size()) << ended.output();
    return lives;
}

// "SPEC,first=N" for N from `first` on.
inline std::vector<std::string> numbered(const std::string& spec, int first, int count)
{
    std::vector<std::string> faults;
    for (int n = first; n < first + count; ++n) {
        faults.push_back(spec + ",first=" + std::to_string(n));
    }
    return faults;
}

} // namespace ucxl::test
