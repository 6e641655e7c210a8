// The device as one process uses it. Commands and doorbells go in; memory accesses, CQEs and events go out through
// host.h.
//
// Thread safe: every call takes the host's lock. The objects of a process are released when its fabric object is
// destroyed, or when another process finds it dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prm/command.h"
#include "softhca/core/arena/arena.h"
#include "softhca/core/arena/cost.h"

namespace ucxl::softhca
{

struct fabric_options {
    unsigned devices              = 1;
    unsigned functions_per_device = 1;
    softhca::card card{};
    card_times costs = card_times::none;
    fault_plan faults{};
    std::uint64_t now_ns = 0;                        // the host's clock, from which on the times of `faults` count
    std::optional<std::uint64_t> adversarial_seed{}; // send queues execute in the adversarial order
    netdev_name netdev{};                            // of the first function
};

struct process_identity {
    std::int32_t process     = 0;
    std::uint64_t start_time = 0;
};

class fabric
{
public:
    static constexpr std::size_t memory_bytes() { return sizeof(arena); }

    // Formats zeroed, page-aligned memory of at least memory_bytes(). The error names the option and its limit.
    static std::expected<void, std::string> format(std::span<std::byte> zeroed, const fabric_options& options);

    // Attaches to memory that this or another process formatted.
    static std::expected<std::unique_ptr<fabric>, std::string> attach(std::span<std::byte> memory, host& outside,
                                                                      const process_identity& process);

    ~fabric();
    fabric(const fabric&)            = delete;
    fabric& operator=(const fabric&) = delete;

    client_id self() const;
    unsigned functions() const;
    function_record function(function_id function) const;
    port_counters counters(function_id function) const;

    // Executes a command mailbox, whatever its bytes. The answer goes to `output` (status, syndrome); the status is
    // also returned. An output shorter than 16 bytes is refused with bad_output_length and left unchanged.
    prm::command_status command(function_id function, std::uint16_t uid, std::span<const std::byte> input,
                                std::span<std::byte> output);

    // What the kernel does besides commands: register memory of this process, and allocate doorbell pages.
    std::expected<std::uint32_t, prm::command_status> create_umem(function_id function, std::uint16_t uid,
                                                                  std::uint64_t address, std::uint64_t length,
                                                                  std::uint32_t access);
    prm::command_status destroy_umem(std::uint32_t umem);
    std::expected<std::uint32_t, prm::command_status> alloc_uar(function_id function);
    prm::command_status free_uar(std::uint32_t uar);

    // Allocates device memory (MEMIC): whole pages, aligned to 64 << log_alignment. Returns the offset in the memory of
    // the function's device. A key for it is created with access mode memic and that offset as start_addr, and is
    // zero-based. free_memic answers resource_busy while a key refers to it.
    std::expected<std::uint64_t, prm::command_status> alloc_memic(function_id function, std::uint64_t length,
                                                                  unsigned log_alignment);
    prm::command_status free_memic(function_id function, std::uint64_t offset);

    // Replaces the memory of a key, which keeps its number, as CREATE_MKEY with these bytes would make it: the kernel
    // does that to a memory region with WQEs of its own.
    prm::command_status replace_region(function_id function, std::uint32_t key, std::span<const std::byte> create_mkey);

    // Counts keys that a program has left to the kernel, which destroys them now.
    void count_left_keys(std::size_t keys);

    // Sets where the events of an object go. Returns the previous route with its count, or nothing when the object is
    // not of this process.
    std::optional<event_route> route_completions(std::uint32_t cqn, const event_route& route);
    std::optional<event_route> route_cq_errors(std::uint32_t cqn, const event_route& route);
    std::optional<event_route> route_queue_pair(std::uint32_t qpn, const event_route& route);
    std::optional<event_route> route_shared_receive_queue(std::uint32_t srqn, const event_route& route);

    // An event channel of a context of that function. The device tells it when it cuts the context off, and if
    // `gets_device_events` what happens to the device and its port. 0: there are too many.
    std::uint32_t add_channel(function_id function, const event_route& route, bool gets_device_events);
    void drop_channel(std::uint32_t channel);

    // Whether contexts of that incarnation were cut off from the function: it was removed, or recovered.
    bool cut_off(function_id function, std::uint8_t incarnation) const;

    // Changes a device now, or after that time. False when there is no such function.
    bool change(device_change change, std::uint64_t time_ns = 0);

    // The offset of that function's device memory (MEMIC) in the arena, for mapping it. Page-aligned.
    std::size_t memic_offset(function_id function) const;

    // Eight bytes, as they are in memory, were written to a doorbell page of this process.
    void doorbell(std::uint32_t uar, std::size_t offset, std::uint64_t value);

    // Executes everything of this process that can continue: send queues with new producer counters, retries that are
    // due, receives posted to queue pairs in error. Cheap when there is nothing. Returns whether anything happened.
    // `doorbells_missed`: any queue may have been rung since the last call.
    bool progress(bool doorbells_missed = false);

    // A WQE was posted to this queue pair and its doorbell record was written: the same as its doorbell.
    bool progress_queue_pair(std::uint32_t qpn);

private:
    fabric(arena& memory, host& outside, client_id self);

    std::unique_ptr<adversarial_order> _order; // null: the order of posting
    environment _device;
    std::vector<std::uint32_t> _queue_pairs; // of this process
};

} // namespace ucxl::softhca
