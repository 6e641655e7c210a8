#include "virtual_files.h"

#include "softhca/shim/process/device_process.h"
#include "softhca/shim/sysfs/files.h"
#include "softhca/shim/system/libc_functions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <format>
#include <mutex>
#include <sys/mman.h>
#include <sys/sysmacros.h>

namespace ucxl::softhca
{
namespace
{

// The descriptors of directories. The inode tells whether the descriptor still is the one that was opened.
struct open_directory {
    int fd      = -1;
    ino_t inode = 0;
    std::string path;
};

constinit std::mutex directories_lock;
std::vector<open_directory>& directories()
{
    static auto* const known = new std::vector<open_directory>; // there until the very end of the process
    return *known;
}
constinit std::atomic<std::size_t> directories_open = 0;

std::optional<std::string> path_of(int fd)
{
    if (fd < 0 || directories_open.load() == 0) {
        return std::nullopt;
    }
    const std::lock_guard hold(directories_lock);
    for (const open_directory& known : directories()) {
        struct stat now{};
        if (known.fd == fd && libc().fstat(fd, &now) == 0 && now.st_ino == known.inode) {
            return known.path;
        }
    }
    return std::nullopt;
}

std::optional<std::string> real_directory(int directory)
{
    std::array<char, PATH_MAX> text;
    if (directory == AT_FDCWD) {
        return ::getcwd(text.data(), text.size()) != nullptr ? std::optional(std::string(text.data())) : std::nullopt;
    }
    const std::string link = std::format("/proc/thread-self/fd/{}", directory);
    const ssize_t length   = libc().readlink(link.c_str(), text.data(), text.size());
    return length > 0 ? std::optional(std::string(text.data(), static_cast<std::size_t>(length))) : std::nullopt;
}

// The absolute path, if it may be one of ours.
std::optional<std::string> absolute(int directory, const char* path)
{
    if (path == nullptr) {
        return std::nullopt;
    }
    if (*path != '/') {
        if (const auto base = path_of(directory)) {
            return *base + "/" + path;
        }
    }
    if (!may_name_ours(path)) {
        return std::nullopt;
    }
    if (*path == '/') {
        return path;
    }
    const int saved = errno;
    const auto base = real_directory(directory);
    errno           = saved;
    return base ? std::optional(*base + "/" + path) : std::nullopt;
}

// One of our paths. The process may end in another thread meanwhile.
class found_path
{
public:
    found_path(int directory, const char* path)
    {
        auto whole = absolute(directory, path);
        if (!whole) {
            return;
        }
        const int saved = errno;
        _process        = device_process::attach();
        errno           = saved;
        if (_process != nullptr && _process->files().files().covers(*whole)) {
            _path = std::move(*whole);
            _inside.emplace(*_process);
        }
    }
    explicit operator bool() const { return _inside && *_inside; }

    const std::string& path() const { return _path; }
    const sysfs_tree& tree() const { return _process->files().files(); }
    kernel& files() const { return _process->files(); }

private:
    std::string _path;
    device_process* _process = nullptr;
    std::optional<device_process::visit> _inside;
};

int fail(int error)
{
    errno = error;
    return -1;
}

int open_file(const std::string& text, int flags)
{
    if ((flags & O_ACCMODE) != O_RDONLY) {
        return fail(EACCES);
    }
    const int file = ::memfd_create("sysfs", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    if (file < 0) {
        return -1;
    }
    if (libc().write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::lseek(file, 0, SEEK_SET) != 0) {
        libc().close(file);
        return fail(ENOMEM);
    }
    return file;
}

int open_directory_at(const std::string& path, int flags)
{
    if ((flags & O_ACCMODE) != O_RDONLY) {
        return fail(EISDIR);
    }
    const int file = ::memfd_create("sysfs directory", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    struct stat made{};
    if (file < 0 || libc().fstat(file, &made) != 0) {
        return -1;
    }
    const std::lock_guard hold(directories_lock);
    auto& known = directories();
    std::erase_if(known, [file](const open_directory& old) { return old.fd == file; });
    known.push_back({.fd = file, .inode = made.st_ino, .path = path});
    directories_open.store(known.size());
    return file;
}

mode_t mode_of(sysfs_kind kind)
{
    switch (kind) {
    case sysfs_kind::directory:
        return S_IFDIR | 0755;
    case sysfs_kind::file:
        return S_IFREG | 0444;
    case sysfs_kind::link:
        return S_IFLNK | 0777;
    case sysfs_kind::device:
        return S_IFCHR | 0666;
    }
    return 0;
}

unsigned char type_of(sysfs_kind kind)
{
    return static_cast<unsigned char>(IFTODT(mode_of(kind)));
}

void describe(const sysfs_node& node, struct stat& into)
{
    into            = {};
    into.st_dev     = makedev(0, 0xfca);
    into.st_ino     = node.inode;
    into.st_mode    = mode_of(node.kind);
    into.st_nlink   = node.kind == sysfs_kind::directory ? 2 : 1;
    into.st_rdev    = node.number;
    into.st_size    = node.kind == sysfs_kind::file ? 4096 : static_cast<off_t>(node.text.size());
    into.st_blksize = 4096;
}

dirent entry(std::string_view name, ino_t inode, unsigned char type)
{
    dirent made{};
    made.d_ino        = inode;
    made.d_reclen     = sizeof(made);
    made.d_type       = type;
    const auto length = std::min(name.size(), sizeof(made.d_name) - 1);
    std::memcpy(made.d_name, name.data(), length);
    return made;
}

std::optional<virtual_entries> entries_of(const sysfs_tree& tree, const sysfs_node* node)
{
    if (node == nullptr || node->kind != sysfs_kind::directory) {
        errno = node == nullptr ? ENOENT : ENOTDIR;
        return virtual_entries{};
    }
    virtual_entries list{.found = true, .entries = {}};
    list.entries.push_back(entry(".", node->inode, DT_DIR));
    list.entries.push_back(entry("..", node->parent != nullptr ? node->parent->inode : node->inode, DT_DIR));
    for (const auto& [name, child] : node->children) {
        if (!tree.present(*child)) {
            continue;
        }
        list.entries.push_back(entry(name, child->inode, type_of(child->kind)));
    }
    for (std::size_t i = 0; i < list.entries.size(); ++i) {
        list.entries[i].d_off = static_cast<off_t>(i + 1);
    }
    return list;
}

} // namespace

std::optional<int> open_virtual(int directory, const char* path, int flags)
{
    const found_path found(directory, path);
    if (!found) {
        return std::nullopt;
    }
    const sysfs_node* const node = found.tree().find(found.path(), (flags & O_NOFOLLOW) == 0);
    if (node == nullptr) {
        return fail((flags & O_CREAT) != 0 ? EACCES : ENOENT);
    }
    switch (node->kind) {
    case sysfs_kind::device:
        return found.files().open(found.path(), flags);
    case sysfs_kind::directory:
        return open_directory_at(found.path(), flags);
    case sysfs_kind::link:
        return fail(ELOOP);
    case sysfs_kind::file:
        break;
    }
    return (flags & O_DIRECTORY) != 0 ? fail(ENOTDIR) : open_file(found.tree().text_of(*node), flags);
}

std::optional<int> stat_virtual(int directory, const char* path, bool follow, struct stat& into)
{
    const found_path found(directory, path);
    if (!found) {
        return std::nullopt;
    }
    const sysfs_node* const node = found.tree().find(found.path(), follow);
    if (node == nullptr) {
        return fail(ENOENT);
    }
    describe(*node, into);
    return 0;
}

std::optional<int> fstat_virtual(int fd, struct stat& into)
{
    if (const auto path = path_of(fd)) {
        return stat_virtual(AT_FDCWD, path->c_str(), true, into);
    }
    device_process* const owner = device_process::owner_of(fd);
    const auto number           = owner != nullptr ? owner->files().device_number(fd) : std::nullopt;
    if (!number || libc().fstat(fd, &into) != 0) {
        return std::nullopt;
    }
    into.st_mode = mode_of(sysfs_kind::device);
    into.st_rdev = *number;
    into.st_size = 0;
    return 0;
}

std::optional<int> access_virtual(int directory, const char* path, int mode)
{
    struct stat found{};
    const auto there = stat_virtual(directory, path, true, found);
    if (!there || *there != 0) {
        return there;
    }
    const unsigned allowed = (found.st_mode >> 6) & 7;
    return (static_cast<unsigned>(mode) & ~allowed) == 0 ? 0 : fail(EACCES);
}

std::optional<ssize_t> readlink_virtual(int directory, const char* path, char* into, std::size_t room)
{
    const found_path found(directory, path);
    if (!found) {
        return std::nullopt;
    }
    const sysfs_node* const node = found.tree().find(found.path(), false);
    if (node == nullptr || node->kind != sysfs_kind::link) {
        return fail(node == nullptr ? ENOENT : EINVAL);
    }
    const std::size_t length = std::min(room, node->text.size());
    std::copy_n(node->text.begin(), length, into);
    return static_cast<ssize_t>(length);
}

std::optional<std::string> realpath_virtual(const char* path)
{
    const found_path found(AT_FDCWD, path);
    if (!found) {
        return std::nullopt;
    }
    auto real = found.tree().real_path(found.path());
    if (!real) {
        errno = ENOENT;
        return std::string();
    }
    return real;
}

std::optional<virtual_entries> entries_virtual(int directory, const char* path)
{
    const found_path found(directory, path);
    return found ? entries_of(found.tree(), found.tree().find(found.path())) : std::nullopt;
}

std::optional<virtual_entries> entries_virtual(int fd)
{
    const auto path = path_of(fd);
    return path ? entries_virtual(AT_FDCWD, path->c_str()) : std::nullopt;
}

void forget_virtual(int fd)
{
    if (directories_open.load() == 0) {
        return;
    }
    const std::lock_guard hold(directories_lock);
    std::erase_if(directories(), [fd](const open_directory& known) { return known.fd == fd; });
    directories_open.store(directories().size());
}

} // namespace ucxl::softhca
