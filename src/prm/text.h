// Text of structures and bytes, for decode_*.cc. Internal to the decoder.
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

// Decimal below 10, hexadecimal from 10 on.
void append_number(std::string& result, std::uint64_t value);

// In groups of four bytes; zeros at the end are counted, not shown.
void append_hex(std::string& result, bytes data);

// "LABEL: field=value ..." and a further indented line for each inner structure. Small structures show every field,
// larger ones those that are not zero. Nonzero bits without a field are shown in hexadecimal with their offset. Missing
// bytes are reported.
void append_structure(std::string& result, std::string_view label, const structure_info& info, bytes data,
                      unsigned indent = 0);

// "LABEL: N bytes: ..." of bytes without a declaration; nothing for none.
void append_bytes(std::string& result, std::string_view label, bytes data, unsigned indent = 0);

// An array of one structure, "LABEL[i]: ...", and the bytes left at the end.
void append_list(std::string& result, std::string_view label, const structure_info& info, bytes data,
                 unsigned indent = 0);

} // namespace ucxl::prm::text
