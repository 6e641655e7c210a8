// A program that does what it is told line by line and answers each line with one number.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace ucxl::bench
{

class worker
{
public:
    // Throws std::system_error.
    explicit worker(const std::vector<std::string>& command);
    // Ends it: its input ends.
    ~worker();
    worker(const worker&)            = delete;
    worker& operator=(const worker&) = delete;

    // Throws std::runtime_error when it has ended.
    double ask(const std::string& line);

private:
    std::string _name;
    pid_t _process;
    std::FILE* _to   = nullptr;
    std::FILE* _from = nullptr;
};

} // namespace ucxl::bench
