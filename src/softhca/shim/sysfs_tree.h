// The files that programs look at to find the device, as data: /sys/class/infiniband*, what they link to, and
// /dev/infiniband. Nothing of it is on a disk; the wrappers of open(), opendir(), stat() and the like answer from here.
//
// Invariant: does not change once made; a directory's children are sorted by name.
//
//     if (tree.covers(path)) {
//         const sysfs_node* node = tree.find(path);      null: ENOENT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "softhca/core/objects.h"

namespace ucxl::softhca
{

enum class sysfs_kind : std::uint8_t {
    directory,
    file,
    link,
    device, // character device
};

struct sysfs_node {
    sysfs_kind kind = sysfs_kind::directory;
    std::string text;       // of a file; the target of a link
    int read_error = 0;     // what reading the file fails with
    dev_t number   = 0;     // of a device
    std::uint64_t inode = 0;
    std::map<std::string, sysfs_node, std::less<>> children;
};

class sysfs_tree
{
public:
    static sysfs_tree make(const std::vector<function_record>& functions);

    // Whether an absolute path is answered here, be the file there or not. Paths may have "." and "..", repeated
    // slashes, and components that are links.
    bool covers(std::string_view path) const;

    // What is at an absolute path. The last component is followed when it is a link, unless `follow` is false.
    const sysfs_node* find(std::string_view path, bool follow = true) const;

    // realpath(): without links, "." and "..". Nothing: there is no such file.
    std::optional<std::string> real_path(std::string_view path) const;

private:
    struct found {
        const sysfs_node* node;
        std::string path;
    };

    std::optional<found> walk(std::string_view path, bool follow, unsigned links_left) const;
    sysfs_node& make_at(std::string_view path);
    void add_file(std::string_view path, std::string text);
    void add_link(std::string_view path, std::string target);

    sysfs_node _root;
};

} // namespace ucxl::softhca
