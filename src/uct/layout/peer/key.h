// What lay_shm and lay_cma need of a remote window, in two parts: the remote key, of fixed length, which travels
// through UCP, and the record, as long as the layout makes it, which stays in a file of the owner and is read by the
// peer that unpacks the key.
//
//     key     who the owner is, how its memory is reached, and where in which of its files the record is
//     record  header, bases of the sources, wire form of the layout
//
// Both come from outside: check_key() and unpack_record() find every field that contradicts another one, a limit, or
// the bounds of the memory. What only the system can tell (which file that is, whose, how long) is asked in
// peer_file.h.
#pragma once

#include "sys/process.h"

#include "sys/error.h"
#include "ucs/layout/layout.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ucxl
{

// How a peer gets at the memory of a window.
enum class shm_access : std::uint32_t {
    none,    // not at all: all that follows in the key is 0
    mapping, // by mapping the file the memory is; bases are offsets in it (lay_shm)
    process, // by the kernel's copy from process to process; bases are addresses of the owner (lay_cma)
};

struct shm_key {
    static constexpr std::uint32_t form = 0x314d4853; // "SHM1"

    std::uint32_t magic; // form
    shm_access access;
    process_identity owner;
    std::uint64_t address;       // of the window at its owner
    std::uint64_t length;        // packed bytes
    std::uint64_t generation;    // of the record, unique in the owner, never 0
    std::uint64_t records_inode; // of the file with the record
    std::uint64_t record_offset;
    std::uint32_t record_length;
    std::int32_t records_fd; // of the owner

    bool operator==(const shm_key&) const = default;
};

static_assert(sizeof(shm_key) == 88);

// Beyond it a key is not worth its record: the longest layout of limits.h.
inline constexpr std::uint32_t max_record_length = 1u << 28;

struct shm_record_header {
    std::uint64_t generation;    // that of the key; 0: the record is gone
    std::uint64_t memory_inode;  // this and the next two: 0 if it is reached by process
    std::uint64_t memory_length; // bytes
    std::int32_t memory_fd;      // of the owner
    std::uint32_t num_sources;
};

struct shm_record {
    shm_record_header header;
    std::vector<std::int64_t> bases; // of every source: from the start of the memory's file, or an address
    layout_ptr layout;
};

// Bytes of the record.
std::size_t record_length(const layout& of);
// into.size() is record_length(). Errors: no_memory.
result<void> pack_record(const shm_record_header& header, std::span<const std::int64_t> bases, const layout& of,
                         std::span<std::byte> into);
// Bytes of the header and the bases, which follow each other.
constexpr std::size_t record_bases_end(std::uint32_t num_sources)
{
    return sizeof(shm_record_header) + num_sources * sizeof(std::int64_t);
}

// Errors: unsupported (another form, or no access), malformed.
result<void> check_key(const shm_key& key);
// Of a key that was checked. Errors: malformed, and those of unpack_wire().
result<shm_record> unpack_record(std::span<const std::byte> from, const shm_key& key);

} // namespace ucxl
