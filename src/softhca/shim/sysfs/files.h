// The list of files and their contents, as the kernel shows a ConnectX-7 function with an InfiniBand port.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tree.h"

namespace ucxl::softhca
{

struct sysfs_file {
    std::string path;
    sysfs_kind kind = sysfs_kind::file;
    std::string text;
    dev_t number         = 0;
    bool ours            = true; // of a directory: everything below it is ours
    function_id function = no_function;
    sysfs_value value    = sysfs_value::none;
};

std::vector<sysfs_file> sysfs_files(const std::vector<sysfs_function>& functions);

// False for paths that cannot be ours. Does not look at the tree, because it is called for every file that a program
// opens.
bool may_name_ours(std::string_view path);

inline constexpr unsigned gid_table_length  = 8;
inline constexpr unsigned pkey_table_length = 128;

} // namespace ucxl::softhca
