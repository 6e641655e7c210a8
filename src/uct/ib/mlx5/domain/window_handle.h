// The memory handles that UCP gets for windows, in the place of stock ones. The transports read the first three members
// of a handle, whoever made it. All are in one range of addresses, so that a domain can tell them from stock ones.
//
// Example: auto* handle = UCXL_TRY(handle_table::instance().take()); if (handle_table::instance().holds(memh)) { ... }
#pragma once

#include "alias_table.h"
#include "key_mark.h"
#include "window_key.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace ucxl::mlx5
{

class domain_device;
struct window_handle;

// The key of a window in a domain, shared by the window and the handles of UCP, which may outlive it.
struct window_record {
    std::unique_ptr<window_key> key; // null once the window has ended
    // Handles with keys of their own, and such as could not get one.
    std::vector<window_handle*> with_own_keys;

    // The handle gets a key of its own, now or soon.
    void note_with_own_keys(window_handle& handle);
    // Keys that peers lose end, and the next user of the handle gets another one.
    void drop_own_keys() noexcept;
    // The same of handles of memory of a card in that range.
    void drop_own_keys_in(std::span<const std::byte> card_memory) noexcept;
    void suspend_exported_keys() noexcept;
    // Those that are in use show the bases from now on. One that cannot is suspended, which is logged.
    void rebind_exported_keys(const std::vector<std::byte*>& bases);
    void end_exported_keys() noexcept;

private:
    void forget_handles_without_keys() noexcept;
};

// As in uct_ib_mem_t of every release.
struct transport_handle {
    std::uint32_t lkey  = no_key;
    std::uint32_t rkey  = no_key;
    std::uint32_t flags = 0;
};

// The transports' part is a base, so it comes first.
struct window_handle : transport_handle {
    // Null for memory of a card, for an empty window, for imported memory, and in a handle that only notes that the
    // domain was asked.
    std::shared_ptr<window_record> record;
    // Memory of this domain's card.
    std::span<std::byte> card_memory;
    // For memory of a card that this domain cannot reach: it has no key, and unreachable_memory copies it.
    domain_device* copied_for = nullptr;
    // For keys that peers must lose while other handles of the window live (UCP's error mode PEER).
    std::unique_ptr<window_key> own_key;
    // For another function of the device. The same for as long as the handle lives: UCP takes the memory handle of an
    // importing process for good until then.
    std::unique_ptr<window_key> exported_key;
    // Of imported memory.
    alias_table::entry* alias = nullptr;
    // Where a window of another process is that copies may reach.
    std::optional<std::uintptr_t> imported_address;
    // Of imported memory that peers must lose while others use it.
    std::optional<key_alias> own_alias;

    bool has_own_keys() const { return own_key != nullptr || exported_key != nullptr; }
    // Peers lose it here.
    void drop_own_key() noexcept
    {
        own_key.reset();
        rkey = lkey;
    }
};

class handle_table
{
public:
    static handle_table& instance();

    bool holds(const void* handle) const
    {
        return _memory != nullptr &&
               reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(_memory) < bytes;
    }
    // Errors: no_memory (there are too many, or there is no memory).
    result<window_handle*> take();
    void give_back(window_handle* handle);

private:
    handle_table();

    static constexpr std::size_t max_handles = std::size_t{1} << 20;
    static constexpr std::size_t bytes       = max_handles * sizeof(window_handle);

    union place {
        window_handle used;
        place* next;
        place() {}
        ~place() {}
    };

    std::mutex _lock;
    place* _memory         = nullptr; // reserved; a page costs memory once it was used
    place* _unused         = nullptr;
    std::size_t _num_fresh = 0; // places [0, _num_fresh) were used before
};

} // namespace ucxl::mlx5
