#include "iov_list.h"

#include "checked.h"
#include "normalise.h"

#include <format>

namespace ucxl
{

result<void> iov_list::reserve(std::size_t count)
{
    if (count > limits::max_entries) {
        return fail(errc::exceeds_limit,
                    std::format("iov: {} parts exceed max_entries ({})", count, limits::max_entries));
    }
    _items.reserve(count);
    return {};
}

result<nest_item> iov_list::place(std::uint32_t source, std::int64_t offset, const element& item)
{
    UCXL_TRY(check_part(source, offset, "part"));
    const auto at = UCXL_TRY(_parts.place(item, "item"));
    UCXL_TRY(_parts.use(item, source, offset, {}));
    nest_item placed{source + at.source, at.node, 0, 0};
    if (!checked::add(offset, at.offset, placed.offset)) {
        return fail(errc::exceeds_limit, std::format("offset exceeds max_offset ({})", limits::max_offset));
    }
    return placed;
}

result<void> iov_list::add_any(std::uint32_t source, std::int64_t offset, const element& item)
{
    const auto placed = place(source, offset, item);
    if (!placed) {
        return fail(placed.error().code, std::format("iov: parts[{}]: {}", _num_added, placed.error().message));
    }
    ++_num_added;
    _items.push_back(*placed);
    return {};
}

result<layout_ptr> iov_list::finish()
{
    auto root = UCXL_TRY(normalise(_parts.loops(), 1, std::move(_items)));
    return _parts.finish(root);
}

} // namespace ucxl
