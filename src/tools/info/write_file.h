// Writes a result to a file or to standard output.
#pragma once

#include <string>

namespace ucxl::info
{

// The file has all bytes or is as it was. Throws a failure that names the file and the reason.
void write_file(const std::string& path, const std::string& bytes);
void print(const std::string& text);

} // namespace ucxl::info
