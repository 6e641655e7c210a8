#include "alias_table.h"

namespace ucxl::mlx5
{

namespace
{

std::pair<std::uint64_t, std::uint64_t> number_of(const exported_handle& handle)
{
    return {std::uint64_t{handle.vhca_id} << 32 | handle.key, handle.created};
}

} // namespace

result<alias_table::entry*> alias_table::take(const exported_handle& handle)
{
    const std::lock_guard guard(_lock);
    const auto [first, last] = _entries.equal_range(number_of(handle));
    for (auto known = first; known != last; ++known) {
        entry& found = known->second;
        if (found.handle.token == handle.token) {
            if (found.users++ == 0) {
                _unused.erase(found.unused_position);
            }
            return &found;
        }
    }
    auto alias = UCXL_TRY(key_alias::create(_pd, handle.vhca_id, handle.key, handle.token));
    entry made{.alias = std::move(alias), .handle = handle};
    return &_entries.emplace(number_of(handle), std::move(made))->second;
}

void alias_table::give_back(entry* used) noexcept
{
    const std::lock_guard guard(_lock);
    if (--used->users != 0) {
        return;
    }
    try {
        used->unused_position = _unused.insert(_unused.end(), used);
    } catch (const std::bad_alloc&) {
        _unused.clear(); // keeping them was only an optimisation
        std::erase_if(_entries, [](const auto& each) { return each.second.users == 0; });
        return;
    }
    while (_unused.size() > _max_unused) {
        drop_oldest();
    }
}

void alias_table::drop_oldest() noexcept
{
    entry* const oldest      = _unused.front();
    const auto [first, last] = _entries.equal_range(number_of(oldest->handle));
    _unused.pop_front();
    for (auto each = first; each != last; ++each) {
        if (&each->second == oldest) {
            _entries.erase(each);
            return;
        }
    }
}

std::size_t alias_table::size() const
{
    const std::lock_guard guard(_lock);
    return _entries.size();
}

} // namespace ucxl::mlx5
