// Text of structures and bytes: the pieces decode_*.cc put together. Internal to the decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reflect.h"

namespace ucxl::prm::text
{

using bytes = std::span<const std::byte>;

// Decimal below 10, hexadecimal from there on.
void append_number(std::string& to, std::uint64_t value);

// In groups of four bytes; a run of zeros at the end is counted, not shown.
void append_hex(std::string& to, bytes data);

// "LABEL: field=value ..." and a further indented line per structure inside. Small structures show every field, larger
// ones those that are not zero. Bits that no field names are shown in hexadecimal with their offset when they are not
// zero. Bytes that are missing are said to be missing.
void append_structure(std::string& to, std::string_view label, const structure_info& info, bytes data,
                      unsigned indent = 0);

// "LABEL: N bytes: ..." of bytes of which nothing is known; nothing for none.
void append_bytes(std::string& to, std::string_view label, bytes data, unsigned indent = 0);

// Elements of one structure, "LABEL[i]: ...", and what is left at the end.
void append_list(std::string& to, std::string_view label, const structure_info& info, bytes data, unsigned indent = 0);

} // namespace ucxl::prm::text
