// host.h on Linux: the memory of other processes through process_vm_*, their event channels through /proc, and a lock
// in the shared memory.
//
// A signal may interrupt a thread that holds the lock, and its handler may call the model again. held_here() tells, and
// the caller then leaves the work for later.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "event_record.h"
#include "process_move.h"
#include "shared_lock.h"
#include "softhca/core/arena/arena.h"
#include "softhca/core/fabric.h"
#include "softhca/shim/system/wake_timer.h"

namespace ucxl::softhca
{

class linux_host final : public host
{
public:
    // `wake`: called by the timer thread for wake_at(). `trace_file`: empty for no trace, "-" for standard error.
    linux_host(arena& records, shared_lock& lock, const process_identity& process, std::string trace_file,
               wake_timer::function wake, void* argument);

    // Called when the fabric was attached.
    void set_self(client_id self) { _self = self; }
    client_id self() const { return _self; }

    bool held_here() const;
    // Calls progress() soon, in the timer thread.
    void wake_now() { _timer.wake_at(0); }
    void stop_timer() { _timer.stop(); }
    void forget_timer() { _timer.forget(); }

    bool lock() override;
    void unlock() override;
    void give_way() override { _lock.give_way(); }
    move_status move(std::span<const piece> to, std::span<const piece> from) override;
    bool alive(client_id client) override;
    std::uint64_t now_ns() override { return monotonic_ns(); }
    void wake_at(std::uint64_t time_ns) override { _timer.wake_at(time_ns); }
    void notify(client_id client, event_route& route, std::uint32_t type) override;
    void spend(std::uint64_t time_ns) override;
    void trace(std::span<const char> text) override;
    bool tracing() const override { return !_trace_file.empty(); }

private:
    // The last look at another process.
    struct acquaintance {
        std::uint32_t generation = 0;
        bool running             = false;
        std::uint64_t seen_ns    = 0;
    };

    bool find_run(const piece& part, std::uint64_t skip, memory_run& found);
    bool foreign_gone(const piece& part);
    move_status move_runs(process_mover& mover, std::span<const piece> to, std::span<const piece> from);
    void believe_ended(pid_t process);
    void count_lost(int error);
    bool count_up(int process, int counter, std::span<const std::byte> bytes);
    bool deliver(int process, const event_route& route, const event_record& event);

    arena& _records;
    shared_lock& _lock;
    process_identity _process;
    std::string _trace_file;
    client_id _self = 0;
    wake_timer _timer;
    std::array<acquaintance, max_clients> _others{};
};

} // namespace ucxl::softhca
