// The file in which a process keeps the records of its remote keys for its peers to read: one memfd for all records.
// Released space is reused. The file never becomes shorter, so that peers can map it.
//
// Invariant: a valid record begins with its generation, which is written last and erased first. A reader that finds the
// same generation before and after reading the record has read that record; what is changed in it meanwhile has a
// counter of its own (key.h).
//
// A program may close descriptors that it did not open, and then the number means another file. So the records are
// written through a mapping, which stays.
//
// Not thread safe.
//
// Example: auto file = record_file::create(); auto at = (*file)->add(record); ... (*file)->erase(*at, record.size());
#pragma once

#include "sys/error.h"
#include "sys/kept_fd.h"
#include "sys/mapping.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace ucxl
{

class record_file
{
public:
    // Errors: no_memory. Throws std::bad_alloc, as the other functions do.
    static result<std::unique_ptr<record_file>> create();
    record_file(const record_file&)            = delete;
    record_file& operator=(const record_file&) = delete;

    // Whether the descriptor still is that of the file. If not, no peer finds the file that has not found it before.
    bool has_descriptor() const noexcept { return _file.is_there(); }
    int fd() const { return _file.get(); }
    std::uint64_t inode() const { return _file.inode(); }

    // Writes the record and returns its offset. Errors: no_memory.
    result<std::uint64_t> add(std::span<const std::byte> record);
    // Changes words of a valid record, behind its generation. Readers see what was changed before when they see this.
    void change(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
    void erase(std::uint64_t offset, std::uint64_t length) noexcept;

private:
    record_file() = default;

    result<std::uint64_t> take(std::uint64_t length);
    result<void> grow(std::uint64_t more);
    void write(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

    kept_fd _file;
    owned_mapping _pages; // of all of the file
    std::uint64_t _length = 0;
    std::map<std::uint64_t, std::uint64_t> _free; // offset -> length; neighbours are joined
};

} // namespace ucxl
