#include "tree.h"

#include "files.h"

namespace ucxl::softhca
{

namespace
{

// The number of links that Linux follows in a path.
constexpr unsigned max_links = 40;

// Removes the first component from the path and returns it.
std::string_view take_component(std::string_view& path)
{
    const std::size_t begin          = std::min(path.find_first_not_of('/'), path.size());
    const std::size_t end            = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    path.remove_prefix(end);
    return component;
}

} // namespace

sysfs_tree::sysfs_tree(const std::vector<sysfs_function>& functions, const sysfs_source* source)
    : _source(source), _root(std::make_unique<sysfs_node>())
{
    for (const sysfs_file& file : sysfs_files(functions)) {
        sysfs_node& node = make(file.path, file.kind, file.kind != sysfs_kind::directory || file.ours);
        node.text        = file.text;
        node.number      = file.number;
        node.function    = file.function;
        node.value       = file.value;
    }
}

std::string sysfs_tree::text_of(const sysfs_node& node) const
{
    return node.value != sysfs_value::none && _source != nullptr ? _source->text(node.function, node.value) : node.text;
}

bool sysfs_tree::present(const sysfs_node& node) const
{
    return node.function == no_function || _source == nullptr || _source->present(node.function);
}

sysfs_node& sysfs_tree::make(std::string_view path, sysfs_kind kind, bool ours)
{
    sysfs_node* at = _root.get();
    while (path.find_first_not_of('/') != std::string_view::npos) {
        const std::string_view component = take_component(path);
        auto found                       = at->children.find(component);
        if (found == at->children.end()) {
            auto child    = std::make_unique<sysfs_node>();
            child->ours   = at->ours;
            child->parent = at;
            child->name   = component;
            child->inode  = ++_inodes;
            found         = at->children.emplace(component, std::move(child)).first;
        }
        at = found->second.get();
    }
    at->kind = kind;
    at->ours = at->ours || ours;
    return *at;
}

sysfs_tree::place sysfs_tree::walk(std::string_view path, bool follow) const
{
    std::string rest(path);
    std::string_view left = rest;
    const sysfs_node* at  = _root.get();
    unsigned links        = 0;

    for (;;) {
        const std::string_view component = take_component(left);
        if (component.empty()) {
            return {.node = at, .ours = at->ours};
        }
        if (component == ".") {
            continue;
        }
        if (component == "..") {
            at = at->parent != nullptr ? at->parent : at;
            continue;
        }
        const auto child = at->children.find(component);
        if (child == at->children.end() || !present(*child->second)) {
            return {.node = nullptr, .ours = at->ours};
        }
        const sysfs_node* const next = child->second.get();
        const bool last              = left.find_first_not_of('/') == std::string_view::npos;
        if (next->kind != sysfs_kind::link || (last && !follow)) {
            at = next;
            continue;
        }
        if (++links > max_links) {
            return {.node = nullptr, .ours = true};
        }
        std::string replaced = next->text;
        replaced.append("/").append(left);
        if (replaced.front() == '/') {
            at = _root.get();
        }
        rest = std::move(replaced);
        left = rest;
    }
}

bool sysfs_tree::covers(std::string_view path) const
{
    return path.starts_with('/') && walk(path, false).ours;
}

const sysfs_node* sysfs_tree::find(std::string_view path, bool follow) const
{
    const place found = walk(path, follow);
    return found.ours ? found.node : nullptr;
}

std::optional<std::string> sysfs_tree::real_path(std::string_view path) const
{
    const sysfs_node* node = find(path);
    if (node == nullptr) {
        return std::nullopt;
    }
    std::string whole;
    for (; node->parent != nullptr; node = node->parent) {
        whole.insert(0, "/" + node->name);
    }
    return whole;
}

} // namespace ucxl::softhca
