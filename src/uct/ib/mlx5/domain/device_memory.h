// Memory on the device (ibv_dm) and the CPU's access to it, at any offset and length.
//
// mlx5 allows the CPU only whole words of 4 bytes (rdma-core, providers/mlx5/verbs.c, mlx5_access_dm). write() puts a
// part of such a word in by reading the word and writing it back. Allocations are whole granules of 8 bytes
// (granule_allocator), so the word that is written back never holds bytes of another allocation, and an atomic
// operation of the device there cannot be lost. Within one allocation it can: while write() runs, nobody else may
// change the up to 3 bytes beside its range that share a word with it. Two writes of the CPU may.
//
// An access is no single operation to the device: a word of 8 bytes can be seen half written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "sys/error.h"
#include "uct/ib/mlx5/layout/verbs_handles.h"

namespace ucxl::mlx5
{

class device_memory
{
public:
    // The kernel gives out multiples of 64 bytes (MLX5_MEMIC_BASE_SIZE, drivers/infiniband/hw/mlx5/mlx5_ib.h), which
    // begin at multiples of 64 on the device.
    static constexpr std::uint64_t unit = 64;

    // `length` is a multiple of `unit`. Errors: no_memory (the device has no room), io_error, unsupported.
    static result<device_memory> allocate(ibv_context* context, std::uint64_t length);

    ibv_dm* handle() const { return _memory.get(); }

    // The range lies inside the memory.
    result<void> read(std::uint64_t offset, std::span<std::byte> to) const;
    // The device has the bytes when this returns, whoever asks it for them.
    result<void> write(std::uint64_t offset, std::span<const std::byte> from);
    // Writes zeros. Offset and length are multiples of 8.
    result<void> clear(std::uint64_t offset, std::uint64_t length);

private:
    explicit device_memory(ibv_dm* memory) : _memory(memory), _partial_words(std::make_unique<std::mutex>()) {}

    result<void> write_part_of_word(std::uint64_t offset, std::span<const std::byte> from);
    result<void> write_words(std::uint64_t offset, std::span<const std::byte> from);
    result<void> flush(std::uint64_t offset) const;

    // Not ibv_free_dm itself as an argument, because that is an inline function of each file.
    struct destroyer {
        void operator()(ibv_dm* memory) const;
    };

    std::unique_ptr<ibv_dm, destroyer> _memory;
    std::unique_ptr<std::mutex> _partial_words; // of two threads only one may read a word and write it back
};

} // namespace ucxl::mlx5
