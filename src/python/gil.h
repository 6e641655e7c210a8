// Time without the GIL, in threads that Python may end.
//
// When the interpreter ends, Python 3.13 and older end each other thread that takes the GIL: by pthread_exit(), which
// unwinds its stack. That of nanobind cannot be unwound, and the process would be aborted. Such a thread stays here
// instead, until the process has ended, as newer Pythons let it.
//
// Example: { const without_gil released; work(); }
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace ucxl::python
{

class without_gil
{
public:
    without_gil() : _thread(PyEval_SaveThread()) {}
    ~without_gil()
    {
        try {
            PyEval_RestoreThread(_thread);
        } catch (...) { // nothing is thrown but by pthread_exit()
            for (;;) {
                pause();
            }
        }
    }
    without_gil(const without_gil&)            = delete;
    without_gil& operator=(const without_gil&) = delete;

private:
    PyThreadState* _thread;
};

} // namespace ucxl::python
