// The device as one process uses it: commands and doorbells in, memory, completions and events out through host.h.
//
// Thread safe: every call takes the host's lock. What a process made is released when its fabric object ends, or when
// another process finds it dead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arena.h"
#include "prm/command.h"

namespace ucxl::softhca
{

enum class profile : std::uint32_t {
    none, // everything takes the time it takes here
    cx6,
    bf3,
};

struct fabric_options {
    unsigned devices              = 1;
    unsigned functions_per_device = 1;
    softhca::profile costs        = profile::none;
    fault_plan faults{};
};

struct process_identity {
    std::int32_t process     = 0;
    std::uint64_t start_time = 0;
};

class fabric
{
public:
    static constexpr std::size_t memory_bytes() { return sizeof(arena); }

    // Zeroed memory of at least memory_bytes(), page-aligned. The error names the option and its limit.
    static std::expected<void, std::string> format(std::span<std::byte> zeroed, const fabric_options& options);

    // Memory that was formatted, here or by another process.
    static std::expected<std::unique_ptr<fabric>, std::string> attach(std::span<std::byte> memory, host& outside,
                                                                      const process_identity& process);

    ~fabric();
    fabric(const fabric&)            = delete;
    fabric& operator=(const fabric&) = delete;

    client_id self() const;
    unsigned functions() const;
    function_record function(function_id which) const;

    // Executes a command mailbox, whatever its bytes. The answer is in `out` (status, syndrome), which is also
    // returned; out shorter than 16 bytes is refused with bad_output_length and left alone beyond what it holds.
    prm::command_status command(function_id which, std::uint16_t uid, std::span<const std::byte> in,
                                std::span<std::byte> out);

    // What the kernel gives a device besides commands: memory of this process, and doorbell pages.
    std::expected<std::uint32_t, prm::command_status> create_umem(function_id which, std::uint16_t uid,
                                                                  std::uint64_t address, std::uint64_t length,
                                                                  std::uint32_t access);
    prm::command_status destroy_umem(std::uint32_t umem);
    std::expected<std::uint32_t, prm::command_status> alloc_uar(function_id which);
    prm::command_status free_uar(std::uint32_t uar);

    // Device memory (MEMIC): returns the offset in that of the function's device, whole pages, aligned to
    // 64 << log_alignment. A key for it is made with access mode memic and that offset as start_addr; it is zero-based.
    // free_memic answers resource_busy while a key refers to it.
    std::expected<std::uint64_t, prm::command_status> alloc_memic(function_id which, std::uint64_t length,
                                                                  unsigned log_alignment);
    prm::command_status free_memic(function_id which, std::uint64_t offset);

    // Makes a key for memory of this process anew under its old number, as CREATE_MKEY with these bytes would: what the
    // kernel does to a region by work requests of its own.
    prm::command_status replace_region(function_id which, std::uint32_t key, std::span<const std::byte> create_mkey);

    // Whom events of an object go to from now on. Returns the route before, with its count. Nothing: not an object of
    // this process.
    std::optional<event_route> route_completions(std::uint32_t cqn, const event_route& route);
    std::optional<event_route> route_cq_errors(std::uint32_t cqn, const event_route& route);
    std::optional<event_route> route_queue_pair(std::uint32_t qpn, const event_route& route);
    std::optional<event_route> route_shared_receive_queue(std::uint32_t srqn, const event_route& route);
    void route_async_events(const event_route& route); // of the process: port and device events

    // Where in the arena's memory the device memory (MEMIC) of that function is, for mapping it. Page-aligned.
    std::size_t memic_offset(function_id which) const;

    // Eight bytes, as they are in memory, written to a doorbell page of this process.
    void doorbell(std::uint32_t uar, std::size_t offset, std::uint64_t value);

    // Everything of this process that can go on: send queues with new producer counters, retries that are due, receives
    // posted to queue pairs in error. Cheap when there is nothing. Returns whether anything happened.
    bool progress();

    // A WQE was posted to this queue pair and its doorbell record written: the same as its doorbell.
    bool progress_queue_pair(std::uint32_t qpn);

private:
    fabric(arena& memory, host& outside, client_id self);

    environment _device;
    std::vector<std::uint32_t> _queue_pairs; // of this process
};

} // namespace ucxl::softhca
