// The part that makes hardware keys for windows, as the rest sees it: it is another library, which is there only where
// devices can be. Without one, windows have no keys and the CPU copies them.
//
// A window has at most one key in each domain of a device. The key shows the window at its address. It is planned
// before the window exists, and bound before UCP learns of the window, because UCP can neither wait for it under its
// lock nor do without it.
//
// Example:
//     auto planned = keys->plan(view.with_keys, content, key_choice::by_cost); // its error says why the CPU copies it
//     ... // the window is made
//     if (auto bound = keys->bind(**planned, window.address()); !bound) { the CPU copies it }
#pragma once

#include "foreign_memory.h"
#include "indirect_memory.h"
#include "sys/error.h"
#include "sys/mapped_ranges.h"
#include "ucs/layout/layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ucxl
{

// What a key has to show.
struct window_content {
    std::byte* address   = nullptr; // null: the window does not exist yet
    std::uint64_t length = 0;
    layout_ptr shape;
    std::vector<std::byte*> bases; // of every source
};

// What one device's domain has, in numbers.
struct domain_figures {
    std::uint64_t keys_live        = 0;
    std::uint64_t keys_suspended   = 0; // of windows that nobody uses at present
    std::uint64_t keys_spare       = 0;
    std::uint64_t entries          = 0; // translation entries of the live keys, octowords
    std::uint64_t binds            = 0;
    std::uint64_t invalidations    = 0;
    std::uint64_t bases_registered = 0; // bytes
    std::uint64_t memic_chunks     = 0;
    std::uint64_t memic_bytes      = 0;
    std::uint64_t memic_free       = 0;
    std::uint64_t exported         = 0; // buffers and windows
    std::uint64_t exported_spare   = 0; // unused keys for export, with those that rest
    std::uint64_t aliases          = 0; // of imported memory, in use or kept
};

// A domain as people see it, until it ends. The domain may hold its lock.
class shown_domain
{
public:
    virtual ~shown_domain() = default;

    // Why it makes no keys; empty if it makes some after all.
    virtual void show_unusable(const std::string& reason) = 0;
    virtual void show_choices(const std::string& choices) = 0; // what its keys are made of
    // Whenever they change, one after the other: this costs no lock.
    virtual void show_figures(const domain_figures& figures) noexcept = 0;

protected:
    shown_domain()                               = default;
    shown_domain(const shown_domain&)            = delete;
    shown_domain& operator=(const shown_domain&) = delete;
};

// What the library of the keys may ask about windows. Any thread.
class window_directory
{
public:
    virtual bool in_arena(const void* address, std::uint64_t length) const = 0; // some byte, margins included
    // All addresses of the arena, margins included. After set_foreign() they stay the same.
    virtual address_range addresses_of_arena() const = 0;
    // The window that holds the address. Throws std::bad_alloc.
    virtual std::optional<window_content> find(const void* address) const = 0;
    // UCX registers the range, some byte of which is in the arena, in the domain. As
    // window_registry::note_registration(). False: it only asks for the domain (domain_query.h), which registers
    // nothing. Throws std::bad_alloc.
    virtual bool note_registration(const void* domain, void* address, std::uint64_t length) const = 0;
    // The memory types of windows without keys, UCS_BIT(ucs_memory_type_t) each.
    virtual std::uint64_t types_of_copied() const = 0;
    // Addresses of the arena that stand for memory of a card. Errors: as window_registry::create_indirect().
    virtual result<std::byte*> reserve_addresses(std::uint64_t length, const indirect_memory& memory) const = 0;
    virtual void free_addresses(const std::byte* address) const = 0; // waits for readers
    // Windows of other processes that this one has imported. From now on UCP looks for the type of each address, which
    // it does only where there is memory of some type. Errors: those of window_registry::reserve().
    virtual result<void> set_foreign(const foreign_memory& memory) const        = 0;
    virtual bool holds_windows(const void* address, std::uint64_t length) const = 0; // some byte is in a live window
    // Whether the range is memory of some card.
    virtual bool is_card_memory(const void* address, std::uint64_t length) const = 0;
    // Whether this process and a peer on its host have a faster way than the device.
    virtual bool has_host_transport() const = 0;
    // Shows a domain of the device to people. Throws std::bad_alloc.
    virtual std::unique_ptr<shown_domain> show_domain(const std::string& device) const = 0;

protected:
    ~window_directory() = default;
};

enum class key_choice : std::uint8_t {
    by_cost, // only if the device follows the layout about as fast as a CPU copies it
    always,
};

// The layout lowered for each device, and the memory registered there. It ends before its context does.
class planned_keys
{
public:
    virtual ~planned_keys() = default;

protected:
    planned_keys()                               = default;
    planned_keys(const planned_keys&)            = delete;
    planned_keys& operator=(const planned_keys&) = delete;
};

// Any thread may call any function at any time, except where it says otherwise.
class window_keys
{
public:
    // Identifies a domain; it may be closed.
    using domain_id = const void*;

    // Plans the keys that are missing. Errors: the reason why the window should be copied.
    virtual result<std::unique_ptr<planned_keys>> plan(std::span<const domain_id> domains,
                                                       const window_content& content, key_choice choice) = 0;
    // Makes them for the window at the address, in all domains or in none; once. Errors: as plan().
    virtual result<void> bind(planned_keys& planned, std::byte* address) = 0;
    // Takes the keys of the window at the address out of use: nobody reaches memory through them any more.
    virtual void suspend(const std::byte* address) = 0;
    // Puts them into use again, over the same bases, whose memory may be another one by now. Errors: the window has no
    // keys any more.
    virtual result<void> resume(const std::byte* address) = 0;
    // Shows other bases. No transfer may use the window. Errors: the keys show the old bases, or there are none any
    // more if a device failed.
    virtual result<void> rebind(const window_content& before, const window_content& after) = 0;
    // Allocates zeroed memory of a card of the domains, and returns its address. Errors: no_memory, unsupported (none
    // of them has such memory).
    virtual result<std::byte*> allocate(std::span<const domain_id> domains, std::uint64_t length) = 0;
    virtual void free(const std::byte* address)                                                   = 0;
    // Whether some domain has a key of the window in use.
    virtual bool has_key(const std::byte* address) const = 0;
    // The window ends.
    virtual void remove(const std::byte* address) = 0;

    // Whether some open domain allocates memory of its card.
    virtual bool has_card_memory() const = 0;

protected:
    ~window_keys() = default;
};

// The function that the other library exports. Both come from one build: `version` is compared. Writes why it returns
// null.
inline constexpr const char* window_keys_entry = "ucxl_mlx5_window_keys";
using window_keys_function = window_keys* (*)(const char* version, const window_directory& directory,
                                              const void* libucp, std::string* reason);

} // namespace ucxl
