// Memory on the network card (MEMIC), in pieces of 8 bytes and more, at addresses of this process at which the CPU has
// no access. Local requests and peers use it by address and key, as any memory; the CPU uses copy_in() and copy_out().
//
// Shared allocations lie in chunks: one ibv_dm, one registration, one key each. The key is that of the chunk.
//   - Who has the key of an allocation reaches its neighbours in the chunk, too. Only `memic_sharing::exclusive` is
//     enforced by the device: the allocation has a chunk and a key of its own, which shows exactly its bytes.
//   - The key works as long as the chunk lives, which may be longer than the allocation: a peer that goes on using the
//     key after release() reaches whoever has the memory next. The key of an exclusive allocation, and of one larger
//     than a chunk, ends in release(); then the device refuses what comes late.
// Fresh memory is zero, so no bytes of an earlier owner are seen.
//
// A chunk that becomes empty is released, but for one, so that an allocation that comes and goes costs no commands.
//
// Example:
//     auto pool = UCXL_TRY(memic_pool::create(domain, arena_addresses));
//     const auto counter = UCXL_TRY(pool->allocate(8));
//     send_to_peer(counter.address, counter.key); // it may add to the word there
//     std::uint64_t value; UCXL_TRY(pool->copy_out(counter.address, 8, &value));
//
// Thread safety: everything. Copies and look-ups do not exclude one another, and never wait for the device to execute a
// command: chunks are made and ended without the lock that they take. Who needs a new chunk waits for whoever makes
// one. The domain's lock is taken inside, so a caller must not hold it (device_window_keys.h has the order of all
// locks). The domain and the source of addresses outlive the pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>

#include "memic_chunk.h"

namespace ucxl::mlx5
{

enum class memic_sharing : std::uint8_t {
    shared,
    exclusive, // a key of its own: nobody reaches it by another key, and its key reaches nothing else
};

struct memic_options {
    std::uint64_t chunk_bytes = 0; // rounded to a multiple of 64; 0: 64 KiB, at most a quarter of the device's memory
};

struct memic_allocation {
    std::byte* address   = nullptr;
    std::uint64_t length = 0; // the request rounded up to 8 bytes, all of which are the caller's
    std::uint32_t key    = 0; // lkey and rkey
};

struct memic_statistics {
    std::uint64_t chunks      = 0;
    std::uint64_t allocations = 0;
    std::uint64_t bytes       = 0; // of all chunks
    std::uint64_t free_bytes  = 0; // of them, in gaps
    std::uint64_t limit       = 0; // what the device gives to all programs together (max_dm_size)
};

class memic_pool
{
public:
    // Makes nothing on the device. Errors: unsupported (the device has no memory to give, or keys without addresses).
    static result<std::unique_ptr<memic_pool>> create(domain& domain, address_source& addresses,
                                                      const memic_options& options = {});
    // Ends all allocations and their keys.
    ~memic_pool()                            = default;
    memic_pool(const memic_pool&)            = delete;
    memic_pool& operator=(const memic_pool&) = delete;

    // The memory is zero and 8-byte aligned, from 64 bytes on 64-byte aligned. Atomic operations of the device work
    // where domain.found.atomics says so. Errors: invalid_param (no bytes), no_memory (memory, keys or addresses),
    // io_error. Throws std::bad_alloc. After all of these the pool is as before, but it may have lost its spare chunk.
    result<memic_allocation> allocate(std::uint64_t length, memic_sharing sharing = memic_sharing::shared);
    // The address is that of an allocation. No request that uses the allocation may be pending. Errors: invalid_param.
    result<void> release(const void* address);

    // The allocation that holds the whole range. Nothing if the range reaches into a neighbour or into free memory. A
    // range of no bytes is held where its address is.
    std::optional<memic_allocation> find(const void* address, std::uint64_t length) const;

    // Copies by the CPU. The range lies in one allocation. device_memory.h says what else may happen to it meanwhile.
    // Errors: invalid_param, io_error.
    result<void> copy_out(const void* address, std::uint64_t length, void* to) const;
    result<void> copy_in(void* address, std::uint64_t length, const void* from);

    memic_statistics statistics() const;

private:
    // The pool's reference is dropped without the lock, because the last one ends the chunk.
    using chunk_ptr = std::shared_ptr<memic_chunk>;
    using chunks    = std::map<std::uintptr_t, chunk_ptr>; // by address

    struct place {
        memic_chunk* chunk;
        std::uint64_t offset; // in the chunk
        granule_allocator::piece piece;
    };
    struct taken_piece {
        chunk_ptr chunk;
        std::uint64_t offset;
        std::uint64_t length;
    };

    memic_pool(domain& domain, address_source& addresses, std::uint64_t limit, std::uint64_t chunk_bytes)
        : _domain(domain), _addresses(addresses), _limit(limit), _chunk_bytes(chunk_bytes)
    {
    }

    // The caller holds no lock.
    std::optional<taken_piece> take_from_chunks(std::uint64_t length);
    result<chunk_ptr> make_chunk(std::uint64_t length, bool is_private);
    bool end_spare();
    result<taken_piece> grow(std::uint64_t length, bool is_private);
    result<memic_allocation> cleared(const taken_piece& taken);
    std::unexpected<error> no_memory(std::uint64_t length, std::string_view reason) const;

    // The caller holds the lock of the chunks.
    std::optional<place> locate(const void* address, std::uint64_t length) const;
    result<place> locate_for_copy(const void* address, std::uint64_t length) const;
    chunk_ptr chunk_with_room(std::uint64_t length) const;
    // Returns the chunk if it shall end.
    chunk_ptr retire_if_empty(memic_chunk& chunk) noexcept;
    chunk_ptr extract(const memic_chunk& chunk) noexcept;

    domain& _domain;
    address_source& _addresses;
    const std::uint64_t _limit;       // max_dm_size
    const std::uint64_t _chunk_bytes; // of a chunk that is shared
    std::mutex _growth;               // held while a chunk is made; the lock below comes after it
    mutable std::shared_mutex _lock;  // guards what follows. Nobody who holds it waits for the device or for a lock
    chunks _chunks;
    memic_chunk* _spare = nullptr; // the shared chunk without allocations
};

} // namespace ucxl::mlx5
