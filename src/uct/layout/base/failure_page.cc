#include "failure_page.h"

#include "sys/memory_file.h"
#include "sys/process.h"

#include <cstdlib>
#include <format>
#include <fstream>
#include <mutex>
#include <new>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

constexpr const char* file_name = "ucx-layout-failures";

struct own_page {
    std::mutex lock;
    std::atomic<failure_page*> page{nullptr};
    std::atomic<pid_t> owner{0};
};

own_page& the_page()
{
    static own_page& page = *new own_page;
    return page;
}

// Without a file the counts are in private memory, and only this process can read them.
void* make_page()
{
    const int fd = memfd_create(file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0) {
        // Sealed, so that nobody who opens the file can shrink it.
        if (ftruncate(fd, sizeof(failure_page)) == 0 &&
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
            void* const mapped = mmap(nullptr, sizeof(failure_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (mapped != MAP_FAILED) {
                return mapped; // the descriptor stays open, so that others find it
            }
        }
        close(fd);
    }
    return std::calloc(1, sizeof(failure_page));
}

// Opens the page of another process.
owned_fd open_page_of(pid_t pid)
{
    const std::string folder = std::format("/proc/{}/fd", pid);
    DIR* const listing       = opendir(folder.c_str());
    if (listing == nullptr) {
        return {};
    }
    owned_fd found;
    const std::string wanted = std::format("/memfd:{} (deleted)", file_name);
    while (const dirent* const entry = readdir(listing)) {
        const std::string path = folder + "/" + entry->d_name;
        std::array<char, 128> target{};
        const ssize_t length = readlink(path.c_str(), target.data(), target.size());
        if (length > 0 && wanted == std::string_view(target.data(), static_cast<std::size_t>(length))) {
            found = owned_fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
            break;
        }
    }
    closedir(listing);
    return found;
}

bool has_library(pid_t pid)
{
    std::ifstream maps(std::format("/proc/{}/maps", pid));
    for (std::string line; std::getline(maps, line);) {
        if (line.contains("libucp_layout")) {
            return true;
        }
    }
    return false;
}

} // namespace

failure_page* own_failure_page() noexcept
{
    own_page& own         = the_page();
    const pid_t pid       = own_pid();
    failure_page* present = own.page.load(std::memory_order_acquire);
    if (present != nullptr && own.owner.load(std::memory_order_relaxed) == pid) {
        return present;
    }
    const std::lock_guard guard(own.lock);
    if (own.page.load() != nullptr && own.owner.load() == pid) {
        return own.page.load();
    }
    void* const memory = make_page();
    if (memory == nullptr) {
        return nullptr;
    }
    auto* const created = new (memory) failure_page{};
    created->num_kinds  = num_failure_kinds;
    created->magic      = failure_page::form;
    own.owner.store(pid, std::memory_order_relaxed);
    own.page.store(created, std::memory_order_release);
    return created;
}

const failure_page* known_failure_page() noexcept
{
    const own_page& own               = the_page();
    const failure_page* const present = own.page.load(std::memory_order_acquire);
    return own.owner.load(std::memory_order_relaxed) == own_pid() ? present : nullptr;
}

failure_counts read_failure_page(const failure_page* page)
{
    failure_counts counts;
    for (std::size_t kind = 0; page != nullptr && kind < num_failure_kinds; ++kind) {
        counts.all[kind]    = page->all[kind].load(std::memory_order_relaxed);
        counts.silent[kind] = page->silent[kind].load(std::memory_order_relaxed);
    }
    return counts;
}

bool count_failures_of(pid_t pid, failure_counts& counts)
{
    const owned_fd file = open_page_of(pid);
    if (!file) {
        counts = {};
        return has_library(pid);
    }
    // Reads and does not map, because the other process may change the file.
    std::array<std::uint64_t, sizeof(failure_page) / sizeof(std::uint64_t)> words{};
    if (!read_all(file, 0, std::as_writable_bytes(std::span(words))) || words[0] != failure_page::form ||
        words[1] != num_failure_kinds) {
        return false;
    }
    for (std::size_t kind = 0; kind < num_failure_kinds; ++kind) {
        counts.all[kind]    = words[2 + kind];
        counts.silent[kind] = words[2 + num_failure_kinds + kind];
    }
    return true;
}

} // namespace ucxl
