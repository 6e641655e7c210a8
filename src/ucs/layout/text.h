// Layouts as text, for tools, tests and logs.
//
//     expr        = NUMBER                                     a block of so many bytes: 4096, 4K, 1M, 2G
//                 | "contig(" N "," expr ")"
//                 | "strided(" N "," expr "," STRIDE ")"       N elements STRIDE bytes apart
//                 | "strided(" list "x" expr "," list ")"      N dimensions, outermost first
//                 | "iov(" part { "," part } ")"               part = [SOURCE ":"] expr "@" OFFSET
//                 | "iov(" N "," MIN ".." MAX [",seed=" S] [",gap=" MIN ".." MAX] [",shuffle"] ")"
//                                                              N blocks of random lengths and gaps (0..MAX)
//                 | "interleaved(" source { ";" source } ")"   source = [SOURCE ":"] [REPEAT "*"] expr "@" OFFSET
//                                                              "," list "," list (counts, strides; N means [N])
//                 | "resized(" expr "," bounds { ";" bounds } ")"  bounds = [SOURCE ":"] LB "," EXTENT
//     list        = "[" NUMBER { "," NUMBER } "]"
//
// White space is ignored. Errors give the column. Expressions nest up to limits::max_depth + 4 deep, enough for any
// normal form.
#pragma once

#include "layout.h"
#include "sys/error.h"

#include <string>
#include <string_view>

namespace ucxl
{

result<layout_ptr> parse_text(std::string_view text);

// Writes the normal form in the same grammar: parse_text(to_text(l)) == l. Lists longer than max_entries end in "..."
// and cannot be parsed.
std::string to_text(const layout& layout, std::size_t max_entries = 64);

// Writes one indented line per node, for people.
std::string describe(const layout& layout, std::size_t max_entries = 16);

} // namespace ucxl
