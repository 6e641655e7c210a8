// Copies between packed bytes of another process's window, whose memory is not mapped here, and this process. The
// kernel goes from block to block: process_vm_readv and _writev, see process_vm_readv(2).
//
// This pays only for long blocks, because for each of them the kernel looks up the owner's pages.
//
// Example: if (!copy_from_process(*imported, offset, local, length)) { errno has the reason }
#pragma once

#include "uct/layout/base/window_copy.h"
#include "uct/layout/peer/import.h"

namespace ucxl
{

// Both sides are [offset, offset + length) of windows that are that long. Returns false with errno if the kernel
// refuses any part; ESTALE if the owner no longer exports the window. Some bytes may have been copied then. Allocates
// nothing and takes no lock.
bool copy_from_process(const imported_window& from, std::uint64_t offset, const transfer_side& to, std::size_t length);
bool copy_to_process(const imported_window& to, std::uint64_t offset, const transfer_side& from, std::size_t length);

} // namespace ucxl
