// What lay_shm and lay_cma need to know of a remote window, in two parts. The remote key has a fixed length and travels
// through UCP. The record is as long as the layout needs; it stays in a file of the owner, and the peer that unpacks
// the key reads it.
//
//     key     who the owner is, how to reach its memory, and in which of its files the record is, and where
//     record  header, places of the sources, wire form of the layout
//
// The owner changes the places when it binds the window to other memory. Both come from outside. check_key() and
// unpack_record() refuse every field that contradicts another field, a limit, or the bounds of the memory. file.h asks
// the system for the rest: which file it is, who owns it, how long it is.
#pragma once

#include "sys/process.h"

#include "sys/error.h"
#include "sys/magic.h"
#include "ucs/layout/layout.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ucxl
{

// How a peer reaches the memory of a window.
enum class shm_access : std::uint32_t {
    none,    // not at all: the rest of the key is 0
    mapping, // it maps the regions that hold the memory; bases are offsets in them (lay_shm)
    process, // the kernel copies from process to process; bases are addresses of the owner (lay_cma)
};

struct shm_key {
    static constexpr auto form = magic<std::uint32_t>("SHM2");

    std::uint32_t magic; // form
    shm_access access;
    process_identity owner;
    std::uint64_t address;       // of the window at its owner
    std::uint64_t length;        // packed bytes
    std::uint64_t generation;    // of the record, unique in the owner, never 0
    std::uint64_t records_inode; // of the file that holds the record
    std::uint64_t record_offset;
    std::uint32_t record_length;
    std::int32_t records_fd; // of the owner

    bool operator==(const shm_key&) const = default;
};

static_assert(sizeof(shm_key) == 88);

// The record of the longest layout of limits.h. A longer record would not be worth its key.
inline constexpr std::uint32_t max_record_length = 1u << 28;

struct shm_record_header {
    std::uint64_t generation; // that of the key; 0: the record is gone
    std::uint64_t binding;    // even, and another number for each binding; odd while the places change
    std::uint32_t num_sources;
    std::uint32_t reserved;
};

// Where the bytes of a source are. If the kernel copies, only the base is not 0. If peers map, all of it is 0 for a
// source without bytes.
struct shm_place {
    std::int64_t base;         // offset from the region's first byte, or address in the owner
    std::uint64_t inode;       // of the region's file, in its file system
    std::uint64_t file_offset; // of the region's first byte, at a page boundary
    std::uint64_t length;      // of the region, bytes; 0: there is none
    std::int32_t fd;           // of the owner
    std::uint32_t device;      // of the file system: Linux numbers devices with 32 bits
};

struct shm_record {
    shm_record_header header;
    std::vector<shm_place> places; // one per source
    layout_ptr layout;
};

// The length of the record in bytes.
std::size_t record_length(const layout& layout);
// into.size() == record_length(). Errors: no_memory.
result<void> pack_record(const shm_record_header& header, std::span<const shm_place> places, const layout& layout,
                         std::span<std::byte> into);
// The bytes of the header and of the places behind it.
constexpr std::size_t record_places_end(std::uint32_t num_sources)
{
    return sizeof(shm_record_header) + num_sources * sizeof(shm_place);
}

// Errors: unsupported (another form, or no access), malformed.
result<void> check_key(const shm_key& key);
// The key has passed check_key(). Errors: malformed, and those of unpack_wire().
result<shm_record> unpack_record(std::span<const std::byte> from, const shm_key& key);
// Whether each source's bytes are inside its region, or can be addresses of a process. Places may be of any number that
// a peer writes. Errors: malformed.
result<void> check_places(const layout& layout, std::span<const shm_place> places, shm_access access);

} // namespace ucxl
