// The windows of other processes that this process has imported, by their addresses there. UCP knows them as memory of
// type RDMA and copies short messages through lay_copy, which asks here: the device does it.
//
// Two processes may have windows at the same addresses. Then nobody can tell whose are meant, and copies are refused;
// transfers by keys are not concerned.
//
// The addresses come from the other process. They are reserved here, so that no memory of this process is, or comes to
// be, at one of them: copies of it would go to the other process. Whoever sends a handle may write any address and
// length into it, so all of them together get only a part of the addresses of this process and of its own windows.
#pragma once

#include "alias_table.h"
#include "staged_copies.h"
#include "sys/mapped_ranges.h"
#include "ucs/window/window_keys.h"

#include <map>
#include <shared_mutex>

namespace ucxl::mlx5
{

class imported_windows final : public foreign_memory
{
public:
    // Of the process.
    static imported_windows& instance();

    // `alias` and `copies` stay until remove(). Errors: unsupported (memory of this process has such an address),
    // exceeds_limit.
    result<void> add(const exported_handle& handle, const alias_table::entry& alias, staged_copies& copies,
                     const window_directory& windows);
    // Waits for copies that are under way.
    void remove(std::uintptr_t address, const alias_table::entry& alias) noexcept;

    bool touches(const void* address, std::uint64_t length) const override;
    bool read(const void* address, std::uint64_t length, void* target) const override;
    bool write(void* address, std::uint64_t length, const void* source) const override;

private:
    struct range {
        std::uint64_t length;
        const alias_table::entry* alias;
        staged_copies* copies;
    };

    // Errors: exceeds_limit.
    result<void> check_room(std::uintptr_t address, std::uint64_t length) const;
    std::uint64_t bytes_in_arena(std::uintptr_t address, std::uint64_t length) const;
    // Calls visit(start, range) for those that may touch the range.
    template <typename Visit>
    void for_each_near(std::uintptr_t address, std::uint64_t length, Visit&& visit) const;
    // Calls visit(range) for the parts of whole pages that are neither in the arena nor in another window of _ranges.
    template <typename Visit>
    void for_each_own_part(std::uintptr_t address, std::uint64_t length, Visit&& visit) const;
    bool reserve(std::uintptr_t address, std::uint64_t length) const;
    void free_reserved(std::uintptr_t address, std::uint64_t length) const noexcept;
    // The one that holds all of it, or null.
    const range* find(std::uintptr_t address, std::uint64_t length) const;

    mutable std::shared_mutex _lock; // shared while the device copies
    std::multimap<std::uintptr_t, range> _ranges;
    std::uint64_t _longest  = 0;
    std::uint64_t _bytes    = 0; // of all ranges
    std::uint64_t _in_arena = 0; // of these, addresses of the arena
    address_range _arena{};
};

} // namespace ucxl::mlx5
