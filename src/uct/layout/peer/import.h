// Windows of peers, known to this process by the remote keys that were unpacked. The start of a window's record is
// mapped, which says whether its owner still has it and, of memory that cannot be mapped, to which bases it is bound
// now. Memory that can be mapped is, too.
//
// A window is imported once, however many keys of it there are, and kept for a while after the last of them: a
// rendezvous unpacks a key for every message. Kept windows are limited in number and bytes; one that its owner has
// released goes when this is noticed, at the latest with the last interface of lay_shm and lay_cma. Any thread.
//
// Invariant: every byte that the layout of an imported window describes is inside its memory, if that is mapped,
// whatever the peer does later, and whether it lives or not.
//
// Example: if (auto window = import_window(key)) { ... release_window(*window); }
#pragma once

#include "file.h"
#include "key.h"

#include "ucs/pack/pack_plan.h"

#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace ucxl
{

struct shm_peer;

struct imported_window {
    shm_key key;
    std::shared_ptr<const shm_peer> owner;
    layout_ptr described;
    owned_mapping record_pages;
    const std::byte* record = nullptr; // in them: header and bases as they are now
    std::optional<owned_mapping> memory{};
    pack_plan_ptr plan{};            // this and the next two if the memory is mapped
    std::vector<std::byte*> bases{}; // in this process
    std::byte* contiguous = nullptr; // the window's first byte if its layout is one block, otherwise null
    unsigned users        = 1;       // keys; 0: on the idle list
    std::list<imported_window*>::iterator idle_position{};

    std::uint64_t mapped_length() const { return memory ? memory->length() : 0; } // of its memory
};

// Errors: what makes this one key useless, with the reason; the window has to be reached in another way.
// Throws std::bad_alloc.
result<imported_window*> import_window(const shm_key& key);
void release_window(imported_window* what) noexcept;

// Whether the owner, if it lives, still lets the window be used. Two loads, wait-free.
bool is_published(const imported_window& window);
// Of a window whose memory is not mapped: the same, and that the owner lives; and the address in the owner from
// which the offsets of a source count at the moment. Any number, if the owner wants so. Wait-free.
bool is_exported(const imported_window& of);
std::uint64_t base_in_owner(const imported_window& of, std::uint32_t source);

// Unmaps all windows without keys.
void drop_idle_imports() noexcept;

struct import_counts {
    std::size_t windows;
    std::size_t idle;
    std::uint64_t mapped_bytes;
};

import_counts count_imports();

} // namespace ucxl
