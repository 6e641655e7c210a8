// What this process shares with others of the host, in figures that people and other processes read: its regions, what
// it has mapped of peers, and the passes that were shared. In a page (base/process_page.h) that is made when the first
// figure changes; a child of fork() begins with its own. Each word is read and written by itself.
//
// Example: memory_figures::count_pass(true); ... memory_page figures; memory_figures::read_of(pid, figures);
#pragma once

#include "sys/magic.h"
#include "ucs/window/region.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace ucxl
{

// Of other processes every word may have any value.
struct memory_page {
    static constexpr auto current_form       = magic<std::uint64_t>("UCXXMEM1");
    static constexpr std::size_t max_regions = 128;

    struct region {
        std::uint64_t start;
        std::uint64_t length;
        std::uint64_t inode;
        std::uint64_t origin; // region_origin
    };

    std::uint64_t form;
    std::uint64_t num_regions; // more than max_regions are not listed
    std::uint64_t region_bytes;
    std::uint64_t peer_windows;
    std::uint64_t peer_windows_idle;
    std::uint64_t peer_regions;
    std::uint64_t peer_bytes;
    std::uint64_t passes_shared; // that this process began
    std::uint64_t passes_alone;  // the same, in which the owner was asked and took no part
    std::uint64_t pieces_moved;  // of passes that peers began
    std::array<region, max_regions> regions;
};

namespace memory_figures
{

void count_pass(bool was_shared) noexcept;
void count_pieces(unsigned number) noexcept;
void show_peers(std::size_t windows, std::size_t idle, std::size_t regions, std::uint64_t bytes) noexcept;
// Shows the regions of the process from now on, and all figures in UCX's virtual file system, below layout/memory.
void publish();

// Of this process; all zero if nothing was counted.
memory_page read();
// Of another process of this user. Returns false if there is none, or if it has not loaded this release of the library.
bool read_of(pid_t pid, memory_page& figures);

} // namespace memory_figures

} // namespace ucxl
