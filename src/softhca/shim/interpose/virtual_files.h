// File system calls on the files of sysfs/tree.h. Every function answers as the system call does. Nothing means that
// the path is not ours and the C library has to answer.
//
// Files are opened as memory files with their content. The descriptor of a directory is a placeholder, known here for
// calls that name files relative to it.
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

// The real path of a file of ours. An empty text and errno ENOENT when there is none.
std::optional<std::string> realpath_virtual(const char* path);

// The entries of a directory, with "." and "..". `found` is false, with errno, when it is not a directory.
struct virtual_entries {
    bool found = false;
    std::vector<dirent> entries;
};
std::optional<virtual_entries> entries_virtual(int directory, const char* path);
std::optional<virtual_entries> entries_virtual(int fd);

// The program closes this descriptor.
void forget_virtual(int fd);

} // namespace ucxl::softhca
