#include "key_pool.h"

#include <algorithm>
#include <bit>

namespace ucxl::mlx5
{

namespace
{

std::size_t class_of(std::uint32_t entries)
{
    return (static_cast<std::size_t>(std::bit_width(entries - 1)) + 1) / 2;
}

} // namespace

result<mkey_owner> create_key(ibv_pd* pd, std::uint32_t entries)
{
    mlx5dv_mkey_init_attr wanted{};
    wanted.pd           = pd;
    wanted.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
    wanted.max_entries  = static_cast<std::uint16_t>(entries);
    mkey_owner mkey(mlx5dv_create_mkey(&wanted));
    if (mkey == nullptr) {
        return fail_errno("a memory key");
    }
    return mkey;
}

result<key_pool::key> key_pool::take(std::uint32_t entries)
{
    const std::size_t index = class_of(std::max<std::uint32_t>(entries, 1));
    if (std::vector<key>& unused = _unused[index]; !unused.empty()) {
        key found = std::move(unused.back());
        unused.pop_back();
        return found;
    }
    return create(entries);
}

result<key_pool::key> key_pool::create(std::uint32_t entries)
{
    const std::size_t index = class_of(std::max<std::uint32_t>(entries, 1));
    // The field for the number of entries has 16 bits.
    const std::uint32_t room = std::min<std::uint32_t>(1U << (2 * index), 65532);
    auto created             = UCXL_TRY(create_key(_pd, room));
    if (_prepare) {
        UCXL_TRY(_prepare(*created));
    }
    return key{std::move(created), room, ++_num_created};
}

void key_pool::give_back(key&& unused) noexcept
{
    std::vector<key>& same = _unused[class_of(unused.room)];
    try {
        if (same.size() < _max_kept) {
            same.push_back(std::move(unused));
        }
    } catch (const std::bad_alloc&) {
        // Keeping it was only an optimisation.
    }
}

std::size_t key_pool::num_unused(std::uint32_t entries) const
{
    return _unused[class_of(std::max<std::uint32_t>(entries, 1))].size();
}

void key_pool::clear() noexcept
{
    for (std::vector<key>& same : _unused) {
        same.clear();
    }
}

std::size_t key_pool::num_unused() const
{
    std::size_t all = 0;
    for (const std::vector<key>& same : _unused) {
        all += same.size();
    }
    return all;
}

} // namespace ucxl::mlx5
