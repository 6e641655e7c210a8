// Addresses for pools that one thread waits for, as long as the test wants it to.
#pragma once

#include <condition_variable>
#include <mutex>

#include "counted_addresses.h"

namespace ucxl::test
{

class gated_addresses : public mlx5::address_source
{
public:
    result<std::byte*> reserve(std::uint64_t length) override
    {
        pass();
        return _open.reserve(length);
    }

    void release(std::byte* address, std::uint64_t length) noexcept override
    {
        pass();
        const std::lock_guard guard(_lock);
        _open.release(address, length);
    }

    void close() { set(false); }
    void open() { set(true); }

    // Returns when a thread waits.
    void wait_for_somebody()
    {
        std::unique_lock guard(_lock);
        _changed.wait(guard, [&] { return _num_waiting != 0; });
    }

private:
    void pass()
    {
        std::unique_lock guard(_lock);
        ++_num_waiting;
        _changed.notify_all();
        _changed.wait(guard, [&] { return _is_open; });
        --_num_waiting;
    }

    void set(bool is_open)
    {
        const std::lock_guard guard(_lock);
        _is_open = is_open;
        _changed.notify_all();
    }

    std::mutex _lock;
    std::condition_variable _changed;
    bool _is_open    = true;
    int _num_waiting = 0;
    counted_addresses _open;
};

} // namespace ucxl::test
