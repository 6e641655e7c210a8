#include "record_file.h"

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

bool write_all(int fd, std::uint64_t offset, std::span<const std::byte> from)
{
    while (!from.empty()) {
        const ssize_t some = pwrite(fd, from.data(), from.size(), static_cast<off_t>(offset));
        if (some <= 0) {
            return false;
        }
        offset += static_cast<std::uint64_t>(some);
        from = from.subspan(static_cast<std::size_t>(some));
    }
    return true;
}

} // namespace

result<std::unique_ptr<record_file>> record_file::create()
{
    std::unique_ptr<record_file> made(new record_file);
    made->_fd = memfd_create("ucx_layout_keys", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat about{};
    if (made->_fd < 0 || fstat(made->_fd, &about) != 0 || fcntl(made->_fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        return fail(errc::no_memory, std::format("no file for remote keys: {}", std::strerror(errno)));
    }
    made->_inode = about.st_ino;
    return made;
}

record_file::~record_file()
{
    if (_fd >= 0) {
        close(_fd);
    }
}

// First fit.
result<std::uint64_t> record_file::take(std::uint64_t length)
{
    const auto fits = [&](const auto& range) { return range.second >= length; };
    auto found      = std::ranges::find_if(_free, fits);
    if (found == _free.end()) {
        const std::uint64_t more = round_up(length, growth);
        if (ftruncate(_fd, static_cast<off_t>(_length + more)) != 0) {
            return fail(errc::no_memory, std::format("no room for remote keys: {}", std::strerror(errno)));
        }
        found = _free.emplace(_length, more).first;
        _length += more;
    }
    auto range     = _free.extract(found); // the node is used again: nothing can fail
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
    const auto at = take(round_up(record.size(), unit));
    if (!at) {
        return at;
    }
    constexpr std::size_t mark = sizeof(std::uint64_t);
    if (!write_all(_fd, *at + mark, record.subspan(mark)) || !write_all(_fd, *at, record.first(mark))) {
        const int reason = errno;
        erase(*at, record.size());
        return fail(errc::no_memory, std::format("a remote key could not be written: {}", std::strerror(reason)));
    }
    return at;
}

void record_file::change(std::uint64_t offset, std::span<const std::byte> bytes) noexcept
{
    (void)write_all(_fd, offset, bytes); // into pages that are there
}

void record_file::erase(std::uint64_t offset, std::uint64_t length) noexcept
{
    constexpr std::uint64_t gone = 0;
    if (!write_all(_fd, offset, std::as_bytes(std::span(&gone, 1)))) {
        return; // the record stays, so its place must not be used again
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
        return; // the place is not used again
    }
}

} // namespace ucxl
