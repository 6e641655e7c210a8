// The files of sysfs_tree.h as file system calls see them. Every function answers as the call does; nothing means that
// the path is none of ours and the C library is to be asked.
//
// Files are opened as memory files with their text. A directory's descriptor is a placeholder that is known here, for
// the calls that name files relative to it.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::softhca
{

struct sysfs_node;

std::optional<int> open_virtual(int directory, const char* path, int flags);
std::optional<int> stat_virtual(int directory, const char* path, bool follow, struct stat& into);
std::optional<int> fstat_virtual(int fd, struct stat& into);
std::optional<int> access_virtual(int directory, const char* path, int mode);
std::optional<ssize_t> readlink_virtual(int directory, const char* path, char* into, std::size_t room);

// A file of ours with its real path; errno ENOENT, and an empty text, where there is none.
std::optional<std::string> realpath_virtual(const char* path);

// The entries of a directory, with "." and ".."; errno, and nothing in them, where it is none.
struct virtual_entries {
    bool found = false;
    std::vector<dirent> entries;
};
std::optional<virtual_entries> entries_virtual(int directory, const char* path);
std::optional<virtual_entries> entries_virtual(int fd);

// A descriptor that the program closes.
void forget_virtual(int fd);

} // namespace ucxl::softhca
