// The wire form of a layout: versioned, little endian, position independent. What comes back from unpack_wire() is in
// normal form whatever the bytes were, or an error: the bytes may be hostile, nothing outside them is read, and neither
// memory nor time grows beyond what limits.h and the size of the input allow.
#pragma once

#include "layout.h"
#include "sys/error.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ucxl
{

// Bytes pack_wire() writes.
std::size_t wire_length(const layout& of);
// into.size() must be at least wire_length(); returns the bytes written.
result<std::size_t> pack_wire(const layout& of, std::span<std::byte> into);
// The input may be longer than the layout; *consumed (if not null) tells how much of it the layout was.
result<layout_ptr> unpack_wire(std::span<const std::byte> from, std::size_t* consumed = nullptr);

} // namespace ucxl
