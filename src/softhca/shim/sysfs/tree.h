// The files in which programs look for the device, as data: /sys/class/infiniband*, the targets of its links, and
// /dev/infiniband. None of them is on disk; the wrappers of open(), opendir(), stat() and similar functions answer from
// here.
//
// Invariant: the nodes never change once made; what changes is asked of a source. The children of a directory are
// sorted by name.
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

#include "softhca/core/arena/objects.h"

namespace ucxl::softhca
{

enum class sysfs_kind : std::uint8_t {
    directory,
    file,
    link,
    device, // character device
};

// What a file shows that changes. Values beyond the names are counters (live_files.cc).
enum class sysfs_value : std::uint32_t {
    none,
    state,
    physical_state,
    rate,
    lid,
};

// Tells what changes while programs run.
class sysfs_source
{
public:
    virtual ~sysfs_source() = default;

    virtual bool present(function_id function) const                        = 0;
    virtual std::string text(function_id function, sysfs_value value) const = 0;
};

inline constexpr function_id no_function = 0xffff;

struct sysfs_node {
    sysfs_kind kind     = sysfs_kind::directory;
    bool ours           = false; // false: a directory of the real file system with one of our files below it
    dev_t number        = 0;     // of a device
    std::uint64_t inode = 0;
    std::string text;                   // the content of a file, or the target of a link
    function_id function = no_function; // it is there as long as that function is
    sysfs_value value    = sysfs_value::none;
    sysfs_node* parent   = nullptr;
    std::string name;
    std::map<std::string, std::unique_ptr<sysfs_node>, std::less<>> children;
};

// The data of one verbs device, in the order of the device numbers.
struct sysfs_function {
    function_record record;
    std::string firmware; // "28.1.0000"
};

class sysfs_tree
{
public:
    // Without a source all functions are there, and files that change have no text. It must outlive the tree.
    explicit sysfs_tree(const std::vector<sysfs_function>& functions, const sysfs_source* source = nullptr);

    // The content of a file, now.
    std::string text_of(const sysfs_node& node) const;
    // Whether the device that a node belongs to is there.
    bool present(const sysfs_node& node) const;

    // Whether an absolute path is answered from here, whether or not the file exists. Paths may contain ".", "..",
    // repeated slashes, and links.
    bool covers(std::string_view path) const;

    // The node at an absolute path. A link as the last component is followed, unless `follow` is false.
    const sysfs_node* find(std::string_view path, bool follow = true) const;

    // As realpath(): without links, "." and "..". Nothing when there is no such file.
    std::optional<std::string> real_path(std::string_view path) const;

private:
    struct place {
        const sysfs_node* node = nullptr; // null: no such file
        bool ours              = false;
    };

    place walk(std::string_view path, bool follow) const;
    sysfs_node& make(std::string_view path, sysfs_kind kind, bool ours);

    const sysfs_source* _source;
    std::unique_ptr<sysfs_node> _root;
    std::uint64_t _inodes = 0;
};

// The device number of /dev/infiniband/uverbs<number>.
dev_t uverbs_device_number(unsigned number);

} // namespace ucxl::softhca
