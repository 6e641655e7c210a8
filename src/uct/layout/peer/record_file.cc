#include "record_file.h"

#include "sys/memory_file.h"
#include "sys/resource_limit.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <format>

#include <fcntl.h>
#include <sys/mman.h>
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
    file->_file = kept_fd(UCXL_TRY(make_memory_file("ucx_layout_keys", 0, F_SEAL_SHRINK)));
    if (!file->_file) {
        return fail_errno("the file for remote keys");
    }
    return file;
}

// The pages are allocated here, because a store for which there is no memory ends the process.
result<void> record_file::grow(std::uint64_t more)
{
    if (!has_descriptor()) {
        return fail(errc::no_memory, "the descriptor of the file for remote keys was closed");
    }
    if (has_limit(RLIMIT_FSIZE, _length + more)) {
        return fail(errc::no_memory, "the file for remote keys would be longer than RLIMIT_FSIZE allows (ulimit -f)");
    }
    int status = 0;
    do {
        status = fallocate(_file.get(), 0, static_cast<off_t>(_length), static_cast<off_t>(more));
    } while (status != 0 && errno == EINTR);
    if (status != 0) {
        return fail(errc::no_memory, std::format("no room for remote keys: {}", std::strerror(errno)));
    }
    _pages = UCXL_TRY(owned_mapping::map(_length + more, PROT_READ | PROT_WRITE, MAP_SHARED, _file.get(), 0));
    _length += more;
    return {};
}

// Peers read at the same time. Whole words, the last one with zeros: records begin at words and end at units. Whoever
// sees one of them sees what was written before.
void record_file::write(std::uint64_t offset, std::span<const std::byte> bytes) noexcept
{
    std::atomic_thread_fence(std::memory_order_release);
    auto* to = reinterpret_cast<std::uint64_t*>(_pages.start() + offset);
    while (!bytes.empty()) {
        std::uint64_t word       = 0;
        const std::size_t length = std::min(bytes.size(), sizeof(word));
        std::memcpy(&word, bytes.data(), length);
        __atomic_store_n(to++, word, __ATOMIC_RELAXED);
        bytes = bytes.subspan(length);
    }
}

// Takes the first range that fits.
result<std::uint64_t> record_file::take(std::uint64_t length)
{
    const auto fits = [&](const auto& range) { return range.second >= length; };
    auto found      = std::ranges::find_if(_free, fits);
    if (found == _free.end()) {
        const std::uint64_t more = round_up(length, growth);
        UCXL_TRY(grow(more));
        found = _free.emplace(_length - more, more).first;
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
    write(at + mark, record.subspan(mark));
    write(at, record.first(mark));
    return at;
}

void record_file::change(std::uint64_t offset, std::span<const std::byte> bytes) noexcept
{
    write(offset, bytes);
}

void record_file::erase(std::uint64_t offset, std::uint64_t length) noexcept
{
    constexpr std::uint64_t gone = 0;
    write(offset, std::as_bytes(std::span(&gone, 1)));
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
