// Windows of peers that this process knows by unpacked remote keys. The start of a window's record is mapped. It tells
// whether the owner still has the window and where its bytes are now. Regions of the peer that hold them are mapped,
// each once for all its windows.
//
// A window is imported once for all its keys, and kept for a while after the last one, because a rendezvous unpacks a
// key for every message. The number of kept windows, and the bytes of regions of kept windows only, are limited. A kept
// window that its owner has released is dropped when this is noticed, at the latest with the last interface of lay_shm
// and lay_cma. Any thread.
//
// Invariant: every byte that the layout of an imported window describes is inside the mapped regions, whatever the peer
// does later, and even after it has ended.
//
// Example: if (auto window = import_window(key)) { ... release_window(*window); }
#pragma once

#include "board_file.h"
#include "key.h"

#include "ucs/pack/pack_plan.h"

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace ucxl
{

struct shm_peer;
struct mapped_region;

// The sources of an imported window in this process, as of one binding of its record.
struct mapped_sources {
    std::uint64_t binding;
    std::vector<std::byte*> bases;
    std::byte* contiguous; // the window's first byte if its layout is one block, otherwise null
    bool may_lose_memory;  // some of it is in a file that may lose pages
    std::vector<std::shared_ptr<mapped_region>> regions; // each once
};

struct imported_window {
    shm_key key;
    std::shared_ptr<const shm_peer> owner;
    layout_ptr described;
    owned_mapping record_pages;
    const std::byte* record = nullptr; // in them: the current header and places
    pack_plan_ptr plan{};              // only if the memory is mapped
    // Null if the memory is not mapped. Replaced when the owner has bound the window anew; those from before stay until
    // no reader section is left that began with them.
    mutable std::atomic<const mapped_sources*> mapped{nullptr};
    mutable std::unique_ptr<const mapped_sources> sources{}; // under the importer's lock
    unsigned users = 1;                                      // number of keys; 0: the window is on the idle list
    std::list<imported_window*>::iterator position{};        // in the list of idle windows or in that of all others
};

// Errors: the reason why this one key is useless; the window must be reached in another way. Throws std::bad_alloc.
result<imported_window*> import_window(const shm_key& key);
// The window of such a key if it is imported already: all that has to be checked was checked then. Otherwise null.
imported_window* find_imported(const shm_key& key) noexcept;
void release_window(imported_window* imported) noexcept;

// Whether the owner, if it lives, still allows use of the window. Two loads, wait-free.
bool is_published(const imported_window& imported);
// Before an operation on a window whose memory is mapped, outside of any reader section: whether it is published, and
// sources_of() are those of its present binding. Wait-free unless the owner has bound it anew.
bool is_usable_now(const imported_window& imported);
// Of a window whose memory is mapped. Call it in a reader section.
inline const mapped_sources& sources_of(const imported_window& imported)
{
    return *imported.mapped.load();
}
// After each operation on such memory, in its reader section: whether some of the memory is gone. Then what was read or
// written there does not count.
bool has_lost_memory(const mapped_sources& sources);
// The same as is_usable_now() for a window whose memory is not mapped, and whether its owner lives. Wait-free.
bool is_exported(const imported_window& imported);
// For a window whose memory is not mapped: whether its memory has ended with the owner, or with the program that the
// owner was: it may become another one (execve(2)), and have other things at the same addresses. Asks the system.
bool has_lost_owner(const imported_window& imported);
// For a window whose memory is not mapped: the address in the owner from which the offsets of a source count now. It
// may be any number, as the owner chooses, and that of another window if is_published() is false afterwards. Wait-free.
std::uint64_t base_in_owner(const imported_window& imported, std::uint32_t source);

// The passes that the owner was offered, and where it looks for them. Null if it shares none. Wait-free.
offered_passes* passes_of_owner(const imported_window& imported);
// Whether the owner is known to be alive. Asks the system.
bool is_owner_alive(const imported_window& imported);
// Whether the owner of a board is known never to finish what it took of a pass: it has ended, or became another
// program. False if the system cannot tell at the moment: a pass must not end while the owner may still copy. Asks the
// system.
bool is_owner_gone(const imported_window& imported);

// Unmaps all windows without keys.
void drop_idle_imports() noexcept;

struct import_counts {
    std::size_t windows;
    std::size_t idle;
    std::size_t regions;
    std::uint64_t mapped_bytes; // of regions
};

import_counts count_imports();

} // namespace ucxl
