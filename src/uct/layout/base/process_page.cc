#include "process_page.h"

#include "sys/kept_fd.h"
#include "sys/memory_file.h"

#include <array>
#include <atomic>
#include <format>
#include <fstream>
#include <new>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

struct open_page {
    std::atomic<bool> is_taken{false};
    kept_fd file;
};

// The descriptors of this process's pages, which stay open so that others find them. Never destroyed.
std::span<open_page> open_pages()
{
    static auto& all = *new std::array<open_page, 4>;
    return all;
}

void close_all()
{
    for (open_page& page : open_pages()) {
        page.file.close();
        page.is_taken = false;
    }
}

void keep_open(owned_fd file)
{
    // A child would show its parent's figures as its own.
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, close_all);
    for (open_page& page : open_pages()) {
        if (!page.is_taken.exchange(true)) {
            page.file = kept_fd(std::move(file));
            return;
        }
    }
}

owned_fd open_page_of(pid_t pid, const char* name)
{
    const std::string folder = std::format("/proc/{}/fd", pid);
    DIR* const listing       = opendir(folder.c_str());
    if (listing == nullptr) {
        return {};
    }
    owned_fd found;
    const std::string wanted = std::format("/memfd:{} (deleted)", name);
    while (const dirent* const entry = readdir(listing)) {
        const std::string path = folder + "/" + entry->d_name;
        std::array<char, 128> target{};
        const ssize_t length = readlink(path.c_str(), target.data(), target.size());
        if (length > 0 && wanted == std::string_view(target.data(), static_cast<std::size_t>(length))) {
            // The process may have put a pipe there meanwhile, which nobody may ever open for writing.
            found = owned_fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
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

void* make_process_page(const char* name, std::size_t length) noexcept
try {
    // Sealed, so that nobody who opens the file can shrink it.
    auto file = make_memory_file(name, length, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    if (!file) {
        return nullptr;
    }
    // By a system call: UCX watches mmap() by a handler of its own, whose locks may be those of another thread of the
    // parent in a child of fork().
    const long mapped = syscall(SYS_mmap, nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
    if (mapped == -1) {
        return nullptr;
    }
    keep_open(std::move(*file));
    return reinterpret_cast<void*>(mapped);
} catch (const std::bad_alloc&) {
    return nullptr;
}

process_page_state read_process_page(pid_t pid, const char* name, std::uint64_t form, std::span<std::uint64_t> words)
{
    const owned_fd file = open_page_of(pid, name);
    if (!file) {
        return has_library(pid) ? process_page_state::absent : process_page_state::unknown;
    }
    // Reads and does not map, because the other process may change the file.
    const bool is_read = read_all(file, 0, std::as_writable_bytes(words)) && words[0] == form;
    return is_read ? process_page_state::present : process_page_state::unknown;
}

} // namespace ucxl
