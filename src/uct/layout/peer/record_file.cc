#include "record_file.h"

#include "sys/memory_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <format>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

constexpr std::uint64_t unit   = 64;       // records begin at multiples of it
constexpr std::uint64_t growth = 64 << 10; // the file grows by at least so much

std::uint64_t round_up(std::uint64_t length, std::uint64_t to)
{
    return (length + to - 1) / to * to;
}

} // namespace

result<std::unique_ptr<record_file>> record_file::create()
{
    std::unique_ptr<record_file> file(new record_file);
    file->_file = UCXL_TRY(make_memory_file("ucx_layout_keys", 0, F_SEAL_SHRINK));
    struct stat status{};
    if (fstat(file->_file.get(), &status) != 0) {
        return fail_errno("the file for remote keys");
    }
    file->_inode = status.st_ino;
    return file;
}

// Takes the first range that fits.
result<std::uint64_t> record_file::take(std::uint64_t length)
{
    const auto fits = [&](const auto& range) { return range.second >= length; };
    auto found      = std::ranges::find_if(_free, fits);
    if (found == _free.end()) {
        const std::uint64_t more = round_up(length, growth);
        if (ftruncate(_file.get(), static_cast<off_t>(_length + more)) != 0) {
            return fail(errc::no_memory, std::format("no room for remote keys: {}", std::strerror(errno)));
        }
        found = _free.emplace(_length, more).first;
        _length += more;
    }
    auto range     = _free.extract(found); // the node is used again, so nothing can fail
    const auto at  = range.key();
    range.key()    = at + length;
    range.mapped() = range.mapped() - length;
    if (range.mapped() > 0) {
        _free.insert(std::move(range));
    }
    return at;
}

result<std::uint64_t> record_file::add(std::span<const std::byte> record)
{
    const std::uint64_t at     = UCXL_TRY(take(round_up(record.size(), unit)));
    constexpr std::size_t mark = sizeof(std::uint64_t);
    if (!write_all(_file, at + mark, record.subspan(mark)) || !write_all(_file, at, record.first(mark))) {
        const int reason = errno;
        erase(at, record.size());
        return fail(errc::no_memory, std::format("a remote key could not be written: {}", std::strerror(reason)));
    }
    return at;
}

void record_file::change(std::uint64_t offset, std::span<const std::byte> bytes) noexcept
{
    static_cast<void>(write_all(_file, offset, bytes)); // into pages that exist
}

void record_file::erase(std::uint64_t offset, std::uint64_t length) noexcept
{
    constexpr std::uint64_t gone = 0;
    if (!write_all(_file, offset, std::as_bytes(std::span(&gone, 1)))) {
        return; // the record stays, so its place must not be reused
    }
    length = round_up(length, unit);
    try {
        auto here = _free.emplace(offset, length).first;
        if (const auto next = std::next(here); next != _free.end() && next->first == offset + length) {
            here->second += next->second;
            _free.erase(next);
        }
        if (here != _free.begin()) {
            const auto before = std::prev(here);
            if (before->first + before->second == offset) {
                before->second += here->second;
                _free.erase(here);
            }
        }
    } catch (const std::bad_alloc&) {
        return; // the place is not reused
    }
}

} // namespace ucxl
