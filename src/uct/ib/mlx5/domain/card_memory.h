// The memory of one network card (MEMIC) as windows know it: allocations of a memic_pool at addresses of the arena,
// which the CPU reaches by copies.
//
// Addresses that the pool gives back are freed later, by drain(): freeing waits for readers, and a reader may be
// waiting for the pool.
#pragma once

#include "memic_pool.h"
#include "ucs/window/indirect_memory.h"
#include "ucs/window/window_keys.h"

#include <list>
#include <memory>
#include <mutex>

namespace ucxl::mlx5
{

class card_memory final : public address_source, public indirect_memory
{
public:
    // Errors: those of memic_pool::create().
    static result<std::unique_ptr<card_memory>> create(domain& keys, const window_directory& windows);
    ~card_memory() override;

    // As the functions of memic_pool.
    result<memic_allocation> allocate(std::uint64_t length);
    result<void> release(const void* address);
    std::optional<memic_allocation> find(const void* address, std::uint64_t length) const
    {
        return _pool->find(address, length);
    }
    memic_statistics statistics() const { return _pool->statistics(); }

    result<std::byte*> reserve(std::uint64_t length) override;
    void release(std::byte* address, std::uint64_t length) noexcept override;
    bool read(const std::byte* address, std::uint64_t length, void* target) const override;
    bool write(std::byte* address, std::uint64_t length, const void* source) const override;

private:
    explicit card_memory(const window_directory& windows) : _windows(windows) {}

    void drain() noexcept;

    const window_directory& _windows;
    std::mutex _lock;                // guards the lists; nobody who holds it waits for another lock
    std::list<std::byte*> _reserved; // by the pool
    std::list<std::byte*> _unused;   // given back, and not yet freed
    std::unique_ptr<memic_pool> _pool;
};

} // namespace ucxl::mlx5
