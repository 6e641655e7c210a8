#include "descriptor_table.h"

#include "event_file.h"

namespace ucxl::softhca
{

bool descriptor_table::has(std::int64_t fd) const noexcept
{
    if (fd < 0) {
        return false;
    }
    if (fd >= known_fds) {
        return true;
    }
    const auto index = static_cast<std::size_t>(fd);
    return (_known[index / 64].load(std::memory_order_acquire) >> index % 64 & 1) != 0;
}

descriptor_entry descriptor_table::find(std::int64_t fd) const
{
    const auto found = _entries.find(fd);
    return found != _entries.end() ? found->second : descriptor_entry{};
}

void descriptor_table::add(int fd, descriptor_entry entry)
{
    if (entry.channel != nullptr) {
        entry.channel->descriptors++;
    }
    _entries[fd] = std::move(entry);
    if (fd < known_fds) {
        const auto index = static_cast<std::size_t>(fd);
        _known[index / 64].fetch_or(std::uint64_t{1} << index % 64, std::memory_order_release);
    }
}

void descriptor_table::hide(int fd) noexcept
{
    if (fd >= 0 && fd < known_fds) {
        const auto index = static_cast<std::size_t>(fd);
        _known[index / 64].fetch_and(~(std::uint64_t{1} << index % 64), std::memory_order_release);
    }
}

descriptor_entry descriptor_table::remove(int fd)
{
    const auto found = _entries.find(fd);
    if (found == _entries.end()) {
        return {};
    }
    descriptor_entry entry = std::move(found->second);
    _entries.erase(found);
    hide(fd);
    if (entry.channel != nullptr) {
        entry.channel->descriptors--;
    }
    return entry;
}

} // namespace ucxl::softhca
