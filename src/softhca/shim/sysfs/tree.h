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
#include <memory>
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
    sysfs_kind kind     = sysfs_kind::directory;
    bool ours           = false; // false: a directory of the real file system that has something of ours below it
    dev_t number        = 0;     // of a device
    std::uint64_t inode = 0;
    std::string text; // of a file; the target of a link
    sysfs_node* parent = nullptr;
    std::string name;
    std::map<std::string, std::unique_ptr<sysfs_node>, std::less<>> children;
};

// What a tree is made from: one of these per verbs device, in the order of their numbers.
struct sysfs_function {
    function_record record;
    std::string firmware; // "28.1.0000"
};

class sysfs_tree
{
public:
    explicit sysfs_tree(const std::vector<sysfs_function>& functions);

    // Whether an absolute path is answered here, be the file there or not. Paths may have "." and "..", repeated
    // slashes, and components that are links.
    bool covers(std::string_view path) const;

    // What is at an absolute path. The last component is followed when it is a link, unless `follow` is false.
    const sysfs_node* find(std::string_view path, bool follow = true) const;

    // realpath(): without links, "." and "..". Nothing: there is no such file.
    std::optional<std::string> real_path(std::string_view path) const;

private:
    struct place {
        const sysfs_node* node = nullptr; // null: no such file
        bool ours              = false;
    };

    place walk(std::string_view path, bool follow) const;
    sysfs_node& make(std::string_view path, sysfs_kind kind, bool ours);

    std::unique_ptr<sysfs_node> _root;
    std::uint64_t _inodes = 0;
};

// /dev/infiniband/uverbs<number> has this device number.
dev_t uverbs_device_number(unsigned number);

} // namespace ucxl::softhca
