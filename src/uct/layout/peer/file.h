// Files of a peer, opened by process number and descriptor as a remote key names them. Any of these numbers may be a
// lie, so nothing is opened before it is known to be what it should be: a file of ours in memory, of the same user,
// with the inode that the key tells.
//
// Example: auto file = peer_file::open(pid, fd, inode, O_RDONLY); file->read(0, buffer);
#pragma once

#include "ucs/layout/error.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/types.h>

namespace ucxl
{

class peer_file
{
public:
    // access: O_RDONLY or O_RDWR. Errors: invalid_param, with the reason.
    static result<peer_file> open(pid_t pid, int fd, std::uint64_t inode, int access);
    peer_file(peer_file&& other) noexcept;
    peer_file& operator=(peer_file&&) = delete;
    ~peer_file();

    int fd() const { return _fd; }
    std::uint64_t length() const; // bytes, at the moment
    // Whether it can never become shorter: what is mapped of it can always be touched.
    bool keeps_its_length() const;
    // All of `into`. False if the file has less there.
    bool read(std::uint64_t offset, std::span<std::byte> into) const;

private:
    explicit peer_file(int fd) : _fd(fd) {}

    int _fd;
};

// Memory of a peer, mapped; unmapped with the object.
class peer_mapping
{
public:
    // The first bytes, to work in. Errors: invalid_param (shorter than `length`, or it may become so), no_memory.
    static result<peer_mapping> map(const peer_file& file, std::uint64_t length);
    // Whole pages around [offset, offset + length), only to be read. Errors: as map().
    static result<peer_mapping> map_around(const peer_file& file, std::uint64_t offset, std::uint64_t length);
    peer_mapping(peer_mapping&& other) noexcept;
    peer_mapping& operator=(peer_mapping&&) = delete;
    ~peer_mapping();

    std::byte* start() const { return _start; }
    std::uint64_t length() const { return _length; }

private:
    peer_mapping(std::byte* start, std::uint64_t length) : _start(start), _length(length) {}

    static result<peer_mapping> map_pages(const peer_file& file, std::uint64_t offset, std::uint64_t length,
                                          int protection);

    std::byte* _start;
    std::uint64_t _length;
};

} // namespace ucxl
