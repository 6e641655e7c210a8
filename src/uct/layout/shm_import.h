// Windows of peers, mapped into this process by the remote keys that were unpacked.
//
// A window is mapped once, however many keys of it there are, and kept for a while after the last of them: a rendezvous
// unpacks a key for every message. Kept windows are limited in number and bytes; one that its owner has released goes
// when this is noticed, at the latest with the last interface of lay_shm. Any thread.
//
// Invariant: every byte that a layout of an imported window describes is inside its mapping, whatever the peer does
// later, and whether it lives or not.
//
// Example: if (auto window = import_window(key)) { ... release_window(*window); }
#pragma once

#include "peer_file.h"
#include "shm_key.h"

#include "ucs/pack/pack_plan.h"

#include <list>
#include <memory>
#include <vector>

namespace ucxl
{

struct shm_peer;

struct imported_window {
    shm_key key;
    std::shared_ptr<const shm_peer> owner;
    peer_mapping memory;
    pack_plan_ptr plan;
    std::vector<std::byte*> bases; // in this process
    std::byte* contiguous;         // the window's first byte if its layout is one block, otherwise null
    unsigned users = 0;            // keys; 0: on the idle list
    std::list<imported_window*>::iterator idle_position{};
};

// Errors: what makes this one key useless, with the reason; the window has to be reached in another way.
// Throws std::bad_alloc.
result<imported_window*> import_window(const shm_key& key);
void release_window(imported_window* what) noexcept;

// Unmaps all windows without keys.
void drop_idle_imports() noexcept;

struct import_counts {
    std::size_t windows;
    std::size_t idle;
    std::uint64_t mapped_bytes;
};

import_counts count_imports();

} // namespace ucxl
