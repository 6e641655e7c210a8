// What the device model needs from the machine around it. The model itself makes no system call and knows of other
// processes only through this; the shim implements it on Linux, tests implement it in one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucxl::softhca
{

// A process that uses the device: an index of the client table.
using client_id = std::uint16_t;

// Where bytes are.
enum class space : std::uint8_t {
    process, // address is a virtual address of process `client`
    memic,   // address is an offset in the device memory of all devices, one behind the other (arena.h: memic_at)
    engine,  // address is a pointer into the caller's own trusted memory (inline data, a CQE being built)
};

struct piece {
    softhca::space space;
    client_id client;
    std::uint64_t address;
    std::uint64_t length;
};

enum class move_status : std::uint8_t {
    ok,
    fault_to,   // memory of the destination is not there or refuses writing
    fault_from, // memory of the source is not there
    gone_to,    // the process of the destination has ended
    gone_from,
};

// Who is told of an event, chosen by that process when it made the object: the model only carries it.
struct event_route {
    std::int32_t channel = -1; // a file descriptor of that process; negative: nobody
    std::uint32_t kind   = 0;  // how the shim writes it
    std::uint64_t value  = 0;  // what identifies the object to the process
    std::uint32_t object = 0;  // its number, for those who get the event entry itself
    std::uint32_t sent   = 0;  // how many events the channel was given, counted by host::notify
};

class host
{
public:
    virtual ~host() = default;

    // The lock of everything shared by processes. True when its last holder ended without giving it back: the caller
    // repairs the shared state. Not recursive.
    virtual bool lock()   = 0;
    virtual void unlock() = 0;

    // Without the lock: who waits for it gets it before the next lock() of this process.
    virtual void give_way() {}

    // Copies all bytes of `from`, in order, to `to`; both lists have the same total. Bytes are written in ascending
    // order between pieces: a later piece is not visible before an earlier one. On a fault some were copied.
    virtual move_status move(std::span<const piece> to, std::span<const piece> from) = 0;

    virtual bool alive(client_id client) = 0;

    // Monotonic, the same clock for all processes.
    virtual std::uint64_t now_ns() = 0;

    // fabric::progress() of this process is to be called at that time or soon after, whatever the process does.
    virtual void wake_at(std::uint64_t time_ns) = 0;

    // Writes an event to a channel of that process; never blocks, however many are unread. `type` is a prm::event_type.
    // The route is the one of the object's record, because what was written is counted in it.
    virtual void notify(client_id client, event_route& route, std::uint32_t type) = 0;

    // Time that a modelled operation costs (--profile), spent outside the lock by whoever called the model.
    virtual void spend(std::uint64_t time_ns) = 0;

    // A complete text for --trace, of whole lines.
    virtual void trace(std::span<const char> text) = 0;
    virtual bool tracing() const                   = 0;
};

} // namespace ucxl::softhca
