// Copies between packed bytes of a window of another process, whose memory is not mapped here, and this process: the
// kernel goes from block to block (process_vm_readv and _writev, kernel's manual page process_vm_readv(2)).
//
// Worth it for long blocks only: each costs the kernel a look at the pages of the owner.
//
// Example: if (!copy_from_process(*imported, offset, local, length)) { errno tells why }
#pragma once

#include "uct/layout/base/window_copy.h"
#include "uct/layout/peer/import.h"

namespace ucxl
{

// Both sides are [offset, offset + length) of their windows, which are that long. False with errno if the kernel
// refuses, also part of it; ESTALE if the owner no longer exports the window. Then some bytes may have been copied.
// No allocation, no lock.
bool copy_from_process(const imported_window& from, std::uint64_t offset, const transfer_side& to, std::size_t length);
bool copy_to_process(const imported_window& to, std::uint64_t offset, const transfer_side& from, std::size_t length);

} // namespace ucxl
