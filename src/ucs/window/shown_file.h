// The file that memory of this process shows, found by its address alone.
//
// Example:
//     auto shown = UCXL_TRY(shown_file::find(start, length));
//     region::share(start, length, shown.fd(), shown.offset());
#pragma once

#include "sys/error.h"
#include "sys/fd.h"

#include <cstddef>
#include <cstdint>

namespace ucxl
{

class shown_file
{
public:
    // All of the memory is one shared mapping of a file. The file is opened by its name, by a descriptor of this
    // process that is of the same file, or, where the system allows it, by the mapping. Errors: invalid_param (the
    // memory is no such mapping, or the file cannot be found), no_memory (no descriptor is left). Throws
    // std::bad_alloc.
    static result<shown_file> find(const std::byte* start, std::uint64_t length);

    int fd() const { return _file.get(); }
    std::uint64_t offset() const { return _offset; } // of the first byte

private:
    shown_file(owned_fd file, std::uint64_t offset) : _file(std::move(file)), _offset(offset) {}

    owned_fd _file;
    std::uint64_t _offset;
};

} // namespace ucxl
