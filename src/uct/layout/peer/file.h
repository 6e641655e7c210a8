// Files of a peer, opened by process number and descriptor as a remote key names them. Any of these numbers may be a
// lie, so nothing is opened before it is known to be what it should be: a file of ours in memory, of the same user,
// with the inode that the key tells.
//
// Example: auto file = peer_file::open(pid, fd, inode, O_RDONLY); file->read(0, buffer);
#pragma once

#include "sys/error.h"
#include "sys/mapping.h"
#include "sys/memory_file.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sys/types.h>

namespace ucxl
{

class peer_file
{
public:
    // access: O_RDONLY or O_RDWR. Errors: invalid_param, with the reason.
    static result<peer_file> open(pid_t pid, int fd, std::uint64_t inode, int access);
    int fd() const { return _file.get(); }
    std::uint64_t length() const; // bytes, at the moment
    // Whether it can never become shorter: what is mapped of it can always be touched.
    bool keeps_its_length() const;
    // All of `bytes`. False if the file has less there.
    bool read(std::uint64_t offset, std::span<std::byte> bytes) const { return read_all(_file, offset, bytes); }

private:
    explicit peer_file(owned_fd file) : _file(std::move(file)) {}

    owned_fd _file;
};

// Maps the first bytes of the file, to work in. Errors: invalid_param (the file is shorter than `length`, or it may
// become so), no_memory.
result<owned_mapping> map_peer_memory(const peer_file& file, std::uint64_t length);
// Maps whole pages around [offset, offset + length), only to be read. Errors: as map_peer_memory().
result<owned_mapping> map_peer_pages(const peer_file& file, std::uint64_t offset, std::uint64_t length);

} // namespace ucxl
