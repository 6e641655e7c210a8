// Aliases of the keys of other functions of this device, made when somebody imports memory and kept for the next time:
// making one is a command of some 150 us, and the exporting side uses its keys again and again. An alias in use stays;
// of the others the most recent ones do.
//
// A key that ends and comes again with the same number, in a process that was started again or later in the same one,
// is another key: the token or the count of its pool differ.
//
// Example:
//     auto* const alias = UCXL_TRY(table.take(handle)); use(alias->key()); table.give_back(alias);
//
// Thread safety: everything, by one lock, which is held during commands to the device.
#pragma once

#include "exported_handle.h"

#include <list>
#include <map>
#include <mutex>

namespace ucxl::mlx5
{

class alias_table
{
public:
    struct entry {
        std::uint32_t key() const { return alias.key(); }

        key_alias alias;
        exported_handle handle;
        std::uint64_t users = 1;
        std::list<entry*>::iterator unused_position{};
    };

    alias_table(ibv_pd* pd, std::size_t max_unused) : _pd(pd), _max_unused(max_unused) {}

    // Errors: io_error (the memory is not exported any more, or never was to this function), no_memory.
    result<entry*> take(const exported_handle& handle);
    void give_back(entry* used) noexcept;

    std::size_t size() const;

private:
    using number = std::pair<std::uint64_t, std::uint64_t>; // of the function and its key, and of the key in its pool

    void drop_oldest() noexcept;

    ibv_pd* const _pd;
    const std::size_t _max_unused;
    mutable std::mutex _lock;
    std::multimap<number, entry> _entries; // several of one number differ in their tokens
    std::list<entry*> _unused;             // the oldest first
};

} // namespace ucxl::mlx5
