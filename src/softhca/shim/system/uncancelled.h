// As long as this exists, pthread_cancel() does not end the thread: the model makes system calls that are cancellation
// points, below calls that are none for the program, and with locks of other processes.
#pragma once

#include <pthread.h>

namespace ucxl::softhca
{

class uncancelled
{
public:
    uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &_before); }
    ~uncancelled() { pthread_setcancelstate(_before, nullptr); }
    uncancelled(const uncancelled&)            = delete;
    uncancelled& operator=(const uncancelled&) = delete;

private:
    int _before = PTHREAD_CANCEL_ENABLE;
};

} // namespace ucxl::softhca
