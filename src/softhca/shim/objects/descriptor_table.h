// The descriptors of the process that are ours: device files and the reading ends of event channels.
//
// has() and hide() may be called from any thread at any time, all others under the kernel's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

namespace ucxl::softhca
{

class device_file;
class event_file;

struct descriptor_entry {
    std::shared_ptr<device_file> file;   // of a device file
    std::shared_ptr<event_file> channel; // of an event channel
    std::weak_ptr<device_file> owner;    // the owner of the channel
};

class descriptor_table
{
public:
    bool has(std::int64_t fd) const noexcept;
    descriptor_entry find(std::int64_t fd) const; // empty when there is none
    void add(int fd, descriptor_entry entry);     // replaces the previous entry
    descriptor_entry remove(int fd);
    // Makes has() say no from now on. Needs no lock.
    void hide(int fd) noexcept;

    template <typename Visit>
    void for_each(Visit visit) const
    {
        for (const auto& [fd, entry] : _entries) {
            visit(static_cast<int>(fd), entry);
        }
    }

private:
    // A bit for each descriptor that a process usually can have. For higher numbers has() says yes, and find() knows.
    static constexpr std::int64_t known_fds = 1 << 16;

    std::array<std::atomic<std::uint64_t>, known_fds / 64> _known{};
    std::map<std::int64_t, descriptor_entry> _entries;
};

} // namespace ucxl::softhca
