// Calls that list a directory. A listing of ours is an object behind the C library's opaque pointer.
#include "export.h"
#include "softhca/shim/system/libc_functions.h"
#include "virtual_files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

using namespace ucxl::softhca;

namespace
{

struct listing {
    int fd           = -1;
    std::size_t next = 0;
    std::vector<dirent> entries;
};

constinit std::mutex listings_lock;
constinit std::atomic<std::size_t> listings_open = 0;
std::vector<std::unique_ptr<listing>>& listings()
{
    static auto* const open = new std::vector<std::unique_ptr<listing>>; // exists until the very end of the process
    return *open;
}

DIR* keep(virtual_entries&& found, int fd)
{
    const std::lock_guard hold(listings_lock);
    listings().push_back(std::make_unique<listing>(listing{.fd = fd, .entries = std::move(found.entries)}));
    listings_open.store(listings().size());
    return reinterpret_cast<DIR*>(listings().back().get());
}

// Null for a listing of the C library.
listing* find(DIR* directory)
{
    if (listings_open.load() == 0) {
        return nullptr;
    }
    const std::lock_guard hold(listings_lock);
    for (const auto& open : listings()) {
        if (reinterpret_cast<DIR*>(open.get()) == directory) {
            return open.get();
        }
    }
    return nullptr;
}

dirent* read_next(listing& directory)
{
    return directory.next < directory.entries.size() ? &directory.entries[directory.next++] : nullptr;
}

template <typename Entry>
int scan(virtual_entries& found, Entry*** list, int (*chosen)(const Entry*), int (*order)(const Entry**, const Entry**))
{
    if (!found.found) {
        return -1;
    }
    static_assert(sizeof(Entry) == sizeof(dirent));
    std::vector<Entry*> kept;
    for (const dirent& each : found.entries) {
        const auto* const entry = reinterpret_cast<const Entry*>(&each);
        if (chosen != nullptr && chosen(entry) == 0) {
            continue;
        }
        auto* const copy = static_cast<Entry*>(std::malloc(sizeof(Entry)));
        if (copy == nullptr) {
            std::for_each(kept.begin(), kept.end(), [](Entry* made) { std::free(made); });
            errno = ENOMEM;
            return -1;
        }
        std::memcpy(copy, entry, sizeof(Entry));
        kept.push_back(copy);
    }
    if (order != nullptr) {
        std::sort(kept.begin(), kept.end(), [order](const Entry* a, const Entry* b) { return order(&a, &b) < 0; });
    }
    *list = static_cast<Entry**>(std::malloc(std::max<std::size_t>(kept.size(), 1) * sizeof(Entry*)));
    if (*list == nullptr) {
        std::for_each(kept.begin(), kept.end(), [](Entry* made) { std::free(made); });
        errno = ENOMEM;
        return -1;
    }
    std::copy(kept.begin(), kept.end(), *list);
    return static_cast<int>(kept.size());
}

} // namespace

SOFTHCA_INTERPOSED DIR* opendir(const char* path)
{
    auto found = entries_virtual(AT_FDCWD, path);
    if (!found) {
        return libc().opendir(path);
    }
    if (!found->found) {
        return nullptr;
    }
    const auto fd = open_virtual(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); // for dirfd()
    return fd && *fd >= 0 ? keep(std::move(*found), *fd) : nullptr;
}

SOFTHCA_INTERPOSED DIR* fdopendir(int fd)
{
    auto found = entries_virtual(fd);
    if (!found) {
        return libc().fdopendir(fd);
    }
    return found->found ? keep(std::move(*found), fd) : nullptr;
}

SOFTHCA_INTERPOSED struct dirent* readdir(DIR* directory)
{
    listing* const ours = find(directory);
    return ours != nullptr ? read_next(*ours) : libc().readdir(directory);
}

SOFTHCA_INTERPOSED struct dirent64* readdir64(DIR* directory)
{
    static_assert(sizeof(dirent) == sizeof(dirent64));
    return reinterpret_cast<struct dirent64*>(readdir(directory));
}

SOFTHCA_INTERPOSED int closedir(DIR* directory)
{
    const listing* const ours = find(directory);
    if (ours == nullptr) {
        return libc().closedir(directory);
    }
    forget_virtual(ours->fd);
    libc().close(ours->fd);
    const std::lock_guard hold(listings_lock);
    std::erase_if(listings(), [ours](const auto& open) { return open.get() == ours; });
    listings_open.store(listings().size());
    return 0;
}

SOFTHCA_INTERPOSED int dirfd(DIR* directory) noexcept
{
    const listing* const ours = find(directory);
    return ours != nullptr ? ours->fd : libc().dirfd(directory);
}

SOFTHCA_INTERPOSED void rewinddir(DIR* directory) noexcept
{
    if (listing* const ours = find(directory)) {
        ours->next = 0;
    } else {
        libc().rewinddir(directory);
    }
}

SOFTHCA_INTERPOSED long telldir(DIR* directory) noexcept
{
    const listing* const ours = find(directory);
    return ours != nullptr ? static_cast<long>(ours->next) : libc().telldir(directory);
}

SOFTHCA_INTERPOSED void seekdir(DIR* directory, long position) noexcept
{
    if (listing* const ours = find(directory)) {
        ours->next = static_cast<std::size_t>(position);
    } else {
        libc().seekdir(directory, position);
    }
}

SOFTHCA_INTERPOSED int scandir(const char* path, struct dirent*** list, int (*chosen)(const struct dirent*),
                               int (*order)(const struct dirent**, const struct dirent**))
{
    auto found = entries_virtual(AT_FDCWD, path);
    return found ? scan(*found, list, chosen, order) : libc().scandir(path, list, chosen, order);
}

SOFTHCA_INTERPOSED int scandir64(const char* path, struct dirent64*** list, int (*chosen)(const struct dirent64*),
                                 int (*order)(const struct dirent64**, const struct dirent64**))
{
    auto found = entries_virtual(AT_FDCWD, path);
    return found ? scan(*found, list, chosen, order) : libc().scandir64(path, list, chosen, order);
}
