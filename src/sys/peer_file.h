// Files of a peer, opened by process number and descriptor, as a remote key has them. Any of these numbers may be a
// lie. So a file is opened only if it is what it should be: one of our files in memory, of the same user, with the
// inode in the key.
//
// Example: auto file = peer_file::open(pid, fd, inode, O_RDONLY); file->read(0, buffer);
#pragma once

#include "error.h"
#include "kept_fd.h"
#include "mapping.h"
#include "memory_file.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <sys/types.h>

namespace ucxl
{

class peer_file
{
public:
    // `access` is O_RDONLY or O_RDWR. Files of different file systems may have the same inode: without their device,
    // it names only one of memfd_create(2), which are all in one. Errors: invalid_param, with the reason.
    static result<peer_file> open(pid_t pid, int fd, std::uint64_t inode, int access,
                                  std::optional<std::uint64_t> device = std::nullopt);
    int fd() const { return _file.get(); }
    // Whether the program has not closed the descriptor.
    bool is_there() const { return _file.is_there(); }
    std::uint64_t length() const;      // bytes, at this moment
    std::uint64_t page_length() const; // bytes
    bool keeps_its_memory() const { return ucxl::keeps_its_memory(_file.file()); }
    // Fills all of `bytes`. Returns false if the file has fewer bytes there.
    bool read(std::uint64_t offset, std::span<std::byte> bytes) const { return read_all(_file.file(), offset, bytes); }

private:
    explicit peer_file(owned_fd file) : _file(std::move(file)) {}

    kept_fd _file;
};

// Maps `length` bytes from `offset` on, which is at a page boundary, for reading and writing. Errors: invalid_param
// (the file is shorter, or may lose memory), no_memory.
result<owned_mapping> map_peer_memory(const peer_file& file, std::uint64_t offset, std::uint64_t length);
// The same of a file that may lose memory. Errors: invalid_param (the file is shorter), no_memory.
result<owned_mapping> map_peer_region(const peer_file& file, std::uint64_t offset, std::uint64_t length);
// Maps the whole pages around [offset, offset + length), read-only. Errors: as map_peer_memory().
result<owned_mapping> map_peer_pages(const peer_file& file, std::uint64_t offset, std::uint64_t length);

} // namespace ucxl
