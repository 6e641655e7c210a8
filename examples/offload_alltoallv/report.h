// What the launcher prints: a few lines to read, and one line of JSON with all counts.
#pragma once

#include "launcher.h"

#include <string>

namespace examples
{

void print_head(const launcher_options& options);
void print_summary(const launcher_options& options, const exchange_result& result);
// One line; docs/windows-on-cards.md says what it has.
std::string as_json(const launcher_options& options, const exchange_result& result);
// Into the file, if there is a path; otherwise to standard output.
void print_or_write(const std::string& line, const std::string& path);

} // namespace examples
