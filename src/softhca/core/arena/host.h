// The interface between the device model and the machine. The model makes no system call and reaches other processes
// only through it. The shim implements it on Linux; tests implement it in one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucxl::softhca
{

// A process that uses the device: an index of the client table.
using client_id = std::uint16_t;

// The address space of a piece of memory.
enum class space : std::uint8_t {
    process, // address is a virtual address of process `client`
    memic,   // address is an offset in the device memory of all devices, one after the other (arena.h: memic_at)
    engine,  // address is a pointer into the model's own memory (inline data, a CQE being built)
};

struct piece {
    softhca::space space;
    client_id client;
    std::uint64_t address;
    std::uint64_t length;
};

enum class move_status : std::uint8_t {
    ok,
    fault_to,   // the destination is not mapped or not writable
    fault_from, // the source is not mapped
    gone_to,    // the process of the destination has ended
    gone_from,
};

// Who gets the events of an object. The process that made the object chooses it; the model only stores it.
struct event_route {
    std::int32_t channel = -1; // a file descriptor of that process; negative: none
    std::uint32_t kind   = 0;  // how the shim formats the event
    std::uint64_t value  = 0;  // identifies the object to the process
    std::uint32_t object = 0;  // the number of the object, for channels that get the event queue entry
    std::uint32_t sent   = 0;  // events written to the channel, counted by host::notify
};

// Instead of a prm::event_type: the channel gets no events any more, and whoever waits for one is woken.
inline constexpr std::uint32_t channel_ends = 0x10000;

class host
{
public:
    virtual ~host() = default;

    // The lock of all shared state. True when the last holder died with the lock: the caller repairs the shared state.
    // Not recursive.
    virtual bool lock()   = 0;
    virtual void unlock() = 0;

    // Called without the lock. A waiter gets the lock before the next lock() of this process.
    virtual void give_way() {}

    // Copies all bytes of `from`, in order, to `to`; both lists have the same total. Pieces are written in order: no
    // piece is visible before an earlier one. On a fault some bytes were copied.
    virtual move_status move(std::span<const piece> to, std::span<const piece> from) = 0;

    virtual bool alive(client_id client) = 0;

    // A monotonic clock, the same for all processes.
    virtual std::uint64_t now_ns() = 0;

    // Asks for a call of fabric::progress() in this process at that time or soon after, whatever the process does.
    virtual void wake_at(std::uint64_t time_ns) = 0;

    // Writes an event to a channel of that process. Never blocks, however many events are unread. `type` is a
    // prm::event_type with its subtype (prm::event_code), or channel_ends. `route` is the one in the object's record,
    // because the event is counted in it.
    virtual void notify(client_id client, event_route& route, std::uint32_t type) = 0;

    // Spends the time of a modelled operation (--times). Called outside the lock by the thread that called the model.
    virtual void spend(std::uint64_t time_ns) = 0;

    // Writes text for --trace: whole lines.
    virtual void trace(std::span<const char> text) = 0;
    virtual bool tracing() const                   = 0;
};

} // namespace ucxl::softhca
