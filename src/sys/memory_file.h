// A file without a name, in memory: what peers open and map by process number and descriptor (memfd_create(2)).
//
// Example: auto file = UCXL_TRY(make_memory_file("ucx_layout", length, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
#pragma once

#include "error.h"
#include "fd.h"

#include <cstddef>
#include <cstdint>
#include <span>

struct stat;
struct statfs;

namespace ucxl
{

// Zeroed. /proc/PID/fd shows `name`. Nobody can undo the seals (F_ADD_SEALS, fcntl(2)). Errors: no_memory.
result<owned_fd> make_memory_file(const char* name, std::uint64_t length, int seals);

// Whether a file is in memory only, and not of a device: of tmpfs or hugetlbfs.
bool is_in_memory(const struct stat& file, const struct statfs& system);

// Whether all of a mapping can always be touched: the file can never become shorter (F_SEAL_SHRINK) and is not of
// hugetlbfs. No seal keeps a page of that in a file: who punches a hole (fallocate(2)) gives it away, and there may be
// no other one.
bool keeps_its_memory(const owned_fd& file);

// Bytes of the pages of such a file: those of hugetlbfs are longer.
std::uint64_t page_length_of(const struct stat& file, const struct statfs& system);

// All of the bytes, at an offset. False with errno if not all were written.
bool write_all(const owned_fd& file, std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
// All of `bytes`. False if the file has less there.
bool read_all(const owned_fd& file, std::uint64_t offset, std::span<std::byte> bytes) noexcept;

} // namespace ucxl
