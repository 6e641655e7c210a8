// Aliases of the keys of other functions of this device, made when somebody imports memory and kept for the next time:
// making one is a command of some 150 us, and the exporting side uses its keys again and again. An alias in use stays;
// of the others the most recent ones do.
//
// Keys that the exporting side announces get their aliases from a thread, before anybody waits for them. Whoever wants
// an alias that another thread is making waits for that one: a second one would take as long.
//
// Example:
//     auto* const alias = UCXL_TRY(table.take(handle.key)); use(alias->key()); table.give_back(alias);
//
// Thread safety: everything, by one lock, which is not held during commands to the device that make an alias.
#pragma once

#include "exported_handle.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include <ucs/datastruct/list.h>

namespace ucxl::mlx5
{

class alias_table
{
public:
    struct entry {
        std::uint32_t key() const { return alias.key(); }

        ucs_list_link_t unused; // while it has no users
        key_alias alias;
        exported_key owner;
        std::uint64_t users;
    };

    alias_table(ibv_pd* pd, std::size_t max_unused);

    // Errors: io_error (the memory is not exported any more, or never was to this function), no_memory.
    result<entry*> take(const exported_key& owner);
    // One more user of an alias that has some.
    void hold(entry* used);
    void give_back(entry* used) noexcept;
    // Soon they have aliases that nobody uses. One that cannot be made is left out.
    void expect(const exported_handle& handle) noexcept;

    std::size_t size() const { return _size.load(std::memory_order_relaxed); }

private:
    // Announcements come from peers, so there is an end to them.
    static constexpr std::size_t max_expected = 1024;

    struct hash_of_key {
        std::size_t operator()(const exported_key& owner) const;
    };

    using entries = std::unordered_map<exported_key, entry, hash_of_key>;

    // With one more user, or null.
    entry* find(const exported_key& owner);
    bool is_in_making(const exported_key& owner) const;
    // Makes an alias that nobody else is making. Releases the lock meanwhile.
    result<key_alias> make(std::unique_lock<std::mutex>& guard, const exported_key& owner);
    entry* put(const exported_key& owner, key_alias&& alias);
    // Returns what has to go instead; it may end without the lock.
    entries::node_type keep_unused(entry& unused) noexcept;
    void make_expected(const std::stop_token& stop);

    ibv_pd* const _pd;
    const std::size_t _max_unused;
    mutable std::mutex _lock; // guards what follows
    entries _entries;
    ucs_list_link_t _unused; // the oldest first
    std::size_t _num_unused = 0;
    std::atomic<std::size_t> _size{0};
    std::vector<exported_key> _in_making;
    std::condition_variable_any _is_made;
    std::deque<exported_key> _expected;
    std::condition_variable_any _is_expected;
    std::jthread _maker; // from the first announcement on; ends before the rest
};

} // namespace ucxl::mlx5
