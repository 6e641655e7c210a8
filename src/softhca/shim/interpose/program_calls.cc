// Calls that replace the program, and its end: the objects of the process are released before its memory is.
#include "export.h"
#include "softhca/shim/process/device_process.h"
#include "softhca/shim/system/libc_functions.h"

#include <cstdarg>
#include <vector>

using namespace ucxl::softhca;

namespace
{

// The arguments of execl() and similar functions, with the null at the end; `environment` gets the argument after it.
std::vector<char*> arguments(const char* first, va_list rest, char* const** environment)
{
    std::vector<char*> all;
    for (const char* at = first; at != nullptr; at = va_arg(rest, const char*)) {
        all.push_back(const_cast<char*>(at));
    }
    all.push_back(nullptr);
    if (environment != nullptr) {
        *environment = va_arg(rest, char* const*);
    }
    return all;
}

int execute(const char* path, char* const* given, char* const* environment)
{
    device_process::before_program();
    return libc().execve(path, given, environment);
}

int execute_found(const char* name, char* const* given, char* const* environment)
{
    device_process::before_program();
    return libc().execvpe(name, given, environment);
}

[[gnu::destructor]] void at_the_end()
{
    device_process::finish();
}

} // namespace

SOFTHCA_INTERPOSED int execve(const char* path, char* const given[], char* const environment[]) noexcept
{
    return execute(path, given, environment);
}

SOFTHCA_INTERPOSED int execv(const char* path, char* const given[]) noexcept
{
    return execute(path, given, environ);
}

SOFTHCA_INTERPOSED int execvp(const char* name, char* const given[]) noexcept
{
    return execute_found(name, given, environ);
}

SOFTHCA_INTERPOSED int execvpe(const char* name, char* const given[], char* const environment[]) noexcept
{
    return execute_found(name, given, environment);
}

SOFTHCA_INTERPOSED int execl(const char* path, const char* first, ...) noexcept
{
    va_list rest;
    va_start(rest, first);
    const auto all = arguments(first, rest, nullptr);
    va_end(rest);
    return execute(path, all.data(), environ);
}

SOFTHCA_INTERPOSED int execlp(const char* name, const char* first, ...) noexcept
{
    va_list rest;
    va_start(rest, first);
    const auto all = arguments(first, rest, nullptr);
    va_end(rest);
    return execute_found(name, all.data(), environ);
}

SOFTHCA_INTERPOSED int execle(const char* path, const char* first, ...) noexcept
{
    va_list rest;
    va_start(rest, first);
    char* const* environment = nullptr;
    const auto all           = arguments(first, rest, &environment);
    va_end(rest);
    return execute(path, all.data(), environment);
}

SOFTHCA_INTERPOSED int fexecve(int file, char* const given[], char* const environment[]) noexcept
{
    device_process::before_program();
    return libc().fexecve(file, given, environment);
}
