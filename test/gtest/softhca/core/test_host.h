// A machine for tests of the device model: several processes on one fabric, all of them inside the test.
//
// A process is a fabric object and the memory that the test gave it; the model reaches nothing else. Any address
// outside that memory is a fault, as in a real process, so a test with hostile numbers sees a fault and no stray write.
// Time stands still unless the test advances it.
//
//     test_machine machine({.devices = 1, .functions_per_device = 2});
//     test_process& a = machine.start();
//     test_process& b = machine.start();
//     std::span<std::byte> buffer = a.allocate(4096);
//     a.device().command(0, 1, input, output);
//     b.kill();                                  its memory is gone, nothing was released
//     machine.advance(1'000'000);                wakes those who asked for it
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "softhca/core/fabric.h"

namespace ucxl::softhca::test
{

struct notification {
    client_id client = 0;
    event_route route;
    std::uint32_t type = 0; // prm::event_type
};

class test_machine;

class test_process final : public host
{
public:
    explicit test_process(test_machine& machine) : _machine(machine) {}

    fabric& device() { return *_device; }
    client_id id() const { return _id; }

    // Zeroed memory of this process, aligned to a page and followed by an unmapped page.
    std::span<std::byte> allocate(std::size_t bytes);

    // Memory of the test itself, which must outlive the process.
    void lend(std::span<std::byte> memory) { _memory.push_back(memory); }

    // The memory at an address, or null unless the whole range is memory of this process.
    std::byte* at(std::uint64_t address, std::uint64_t length);

    // Detaches properly.
    void stop();

    // Dies: its memory is gone.
    void kill();
    bool is_alive() const { return _alive; }

    // Dies with the lock: the next one to take it is told.
    void kill_with_lock();

    // Whether it is between lock() and unlock(). The parent of a forked child sees it, too.
    bool has_lock() const;

    // host
    bool lock() override;
    void unlock() override;
    void give_way() override;
    move_status move(std::span<const piece> to, std::span<const piece> from) override;
    bool alive(client_id client) override;
    std::uint64_t now_ns() override;
    void wake_at(std::uint64_t time_ns) override;
    void notify(client_id client, event_route& route, std::uint32_t type) override;
    void spend(std::uint64_t time_ns) override { spent_ns += time_ns; }
    void trace(std::span<const char> text) override { traced.append(text.data(), text.size()); }
    bool tracing() const override { return trace_wanted; }

    std::uint64_t spent_ns = 0;
    std::string traced;
    bool trace_wanted           = false;
    bool stop_when_locked       = false;      // raises SIGSTOP when it gets the lock, for a tracing parent
    std::uint64_t woken_at_ns   = UINT64_MAX; // the earliest requested time that has not passed
    std::uint64_t refused_moves = 0;          // moves of memory that does not exist
    unsigned ways_given         = 0;
    bool loses_events           = false;                   // as a system without room for them
    std::function<void(std::uint32_t type)> when_notified; // called before the event is recorded

private:
    friend class test_machine;

    test_machine& _machine;
    std::unique_ptr<fabric> _device;
    client_id _id = 0;
    bool _alive   = true;
    std::vector<std::span<std::byte>> _memory;
    std::vector<std::span<std::byte>> _mapped; // made by allocate()
};

class test_machine
{
public:
    explicit test_machine(const fabric_options& options = {});
    ~test_machine();
    test_machine(const test_machine&)            = delete;
    test_machine& operator=(const test_machine&) = delete;

    // A new process. The object lives as long as the machine, whether the process is alive or not.
    test_process& start();

    // The shared memory itself, for looking at records.
    arena& memory() { return *reinterpret_cast<arena*>(_bytes.data()); }
    std::span<std::byte> bytes() { return _bytes; }

    // Advances the clock, stopping at each time that a process asked to be woken at.
    void advance(std::uint64_t time_ns);

    // Calls progress() of every process until nothing happens any more.
    void settle();

    test_process* find(client_id client);

    std::uint64_t time_ns = 1'000'000'000;
    std::vector<notification> notifications;

private:
    friend class test_process;

    std::span<std::byte> _bytes;
    std::span<std::byte> _holder; // one client_id, shared with forked children
    std::mutex _lock;
    bool _holder_died = false;
    std::deque<test_process> _processes;
};

} // namespace ucxl::softhca::test
