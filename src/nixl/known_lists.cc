#include "known_lists.h"

#include <algorithm>
#include <iterator>

namespace ucxl::nixl
{

using ucx_layout::result;

result<described_list> known_lists::describe(block_list list)
{
    described_list made{.layout       = find(list),
                        .regions      = list.regions(),
                        .num_blocks   = list.num_blocks(),
                        .first_offset = list.first_offset()};
    if (made.layout != nullptr) {
        return made;
    }
    auto layout = list.describe();
    if (!layout) {
        return std::unexpected(layout.error());
    }
    made.layout = std::make_shared<const ucx_layout::layout>(std::move(*layout));
    if (made.num_blocks >= min_blocks && made.num_blocks <= max_blocks) {
        add(std::make_shared<const known>(std::move(list), made.layout));
    }
    return made;
}

shared_layout known_lists::find(const block_list& list)
{
    if (list.num_blocks() < min_blocks) {
        return nullptr;
    }
    const std::scoped_lock guard(_lock);
    const auto found = std::ranges::find_if(_lists, [&](const known_ptr& each) { return each->blocks == list; });
    if (found == _lists.end()) {
        return nullptr;
    }
    _lists.splice(_lists.begin(), _lists, found);
    return _lists.front()->layout;
}

void known_lists::add(known_ptr made)
{
    std::list<known_ptr> ended; // outlives the lock
    const std::scoped_lock guard(_lock);
    _num_blocks += made->blocks.num_blocks();
    _lists.push_front(std::move(made));
    while (_num_blocks > max_blocks || _lists.size() > max_lists) {
        _num_blocks -= _lists.back()->blocks.num_blocks();
        ended.splice(ended.end(), _lists, std::prev(_lists.end()));
    }
}

std::size_t known_lists::num_blocks() const
{
    const std::scoped_lock guard(_lock);
    return _num_blocks;
}

} // namespace ucxl::nixl
