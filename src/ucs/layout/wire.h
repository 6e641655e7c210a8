// The wire form of a layout: versioned, little endian, position independent. unpack_wire() returns a layout in normal
// form, or an error. The bytes may be hostile: it reads nothing outside them, and limits.h and the input's length bound
// its memory and time.
#pragma once

#include "layout.h"
#include "sys/error.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ucxl
{

// The number of bytes that pack_wire() writes.
std::size_t wire_length(const layout& layout);
// `into` holds at least wire_length() bytes. Returns the number of bytes written.
result<std::size_t> pack_wire(const layout& layout, std::span<std::byte> into);
// The input may be longer than the layout; *consumed, if not null, is set to the layout's length.
result<layout_ptr> unpack_wire(std::span<const std::byte> from, std::size_t* consumed = nullptr);

} // namespace ucxl
