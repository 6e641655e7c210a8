// Copies between plain memory of this process and memory that only the device reaches, by its key: through a buffer, by
// a queue pair of their own. For messages that UCP copies by the CPU, so for short ones.
//
// Thread safety: everything, by one lock, which is held while the device copies.
#pragma once

#include "uct/ib/mlx5/layout/bind_queue.h"
#include "uct/ib/mlx5/layout/verbs_handles.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ucxl::mlx5
{

class staged_copies
{
public:
    // Errors: unsupported, io_error, no_memory.
    static result<std::unique_ptr<staged_copies>> create(ibv_pd* pd);

    // Errors: io_error (the key does not show the range any more). Then some bytes may have been copied.
    result<void> read(std::uint32_t key, std::uintptr_t address, std::uint64_t length, void* target);
    result<void> write(std::uint32_t key, std::uintptr_t address, std::uint64_t length, const void* source);

private:
    static constexpr std::size_t buffer_bytes = 64 << 10;

    explicit staged_copies(bind_queue&& queue) : _queue(std::move(queue)) {}

    result<void> move(const ibv_sge& from, std::uint64_t to, std::uint32_t rkey);

    std::mutex _lock;
    bind_queue _queue;
    std::unique_ptr<std::byte[]> _buffer;
    mr_owner _registration; // ends before the buffer
};

} // namespace ucxl::mlx5
