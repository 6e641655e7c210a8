#include "key_pool.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <ranges>

namespace ucxl::mlx5
{

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

std::size_t key_pool::class_of(std::uint32_t entries)
{
    return (static_cast<std::size_t>(std::bit_width(std::max<std::uint32_t>(entries, 1) - 1)) + 1) / 2;
}

// By who holds the lock of the domain.
void key_pool::count_unused(std::size_t difference)
{
    _num_unused.store(num_unused() + difference, std::memory_order_relaxed);
}

bool key_pool::is_ready(const size_class& same, std::size_t index) const
{
    const key& asked = same.unused[index];
    return asked.is_fresh() || is_at_limit() || same.unused.size() - index > _num_resting ||
           std::chrono::steady_clock::now() - asked.returned >= longest_rest;
}

key_pool::key key_pool::pop(size_class& same)
{
    key found = std::move(same.unused.front());
    same.unused.pop_front();
    count_unused(~std::size_t{0}); // minus one
    same.fewest_unused = std::min(same.fewest_unused, same.unused.size());
    return found;
}

result<key_pool::key> key_pool::take(std::uint32_t entries)
{
    const std::size_t index = class_of(entries);
    size_class& same        = _classes[index];
    if (!same.unused.empty() && is_ready(same, 0)) {
        return pop(same);
    }
    const std::size_t large_enough = class_with_unused(index);
    if (is_at_limit()) {
        if (large_enough != num_classes) {
            return pop(_classes[large_enough]);
        }
        if (const std::size_t smaller = class_with_unused(0); smaller != num_classes) {
            pop(_classes[smaller]); // ends
        }
    }
    auto fresh = create(entries);
    if (!fresh && large_enough != num_classes) {
        return pop(_classes[large_enough]); // it may have to rest, but there is no other one
    }
    return fresh;
}

result<key_pool::key> key_pool::create(std::uint32_t entries)
{
    const std::size_t others = _num_existing++;
    counted existing(_num_existing);
    if (others >= _max_existing) {
        return fail(errc::no_resource, std::format("{} keys exist, the limit is {}", others, _max_existing));
    }
    // The field for the number of entries has 16 bits.
    const std::uint32_t room = std::min<std::uint32_t>(1U << (2 * class_of(entries)), 65532);
    auto created             = UCXL_TRY(create_key(_pd, room));
    if (_prepare) {
        UCXL_TRY(_prepare(*created));
    }
    const std::uint32_t number = created->lkey;
    return key{.existing = std::move(existing),
               .mkey     = std::move(created),
               .number   = number,
               .room     = room,
               .created  = ++_num_created};
}

template <typename Put>
void key_pool::keep_unused(key&& unused, Put&& put) noexcept
{
    std::deque<key>& same = _classes[class_of(unused.room)].unused;
    try {
        if (same.size() < _max_kept) {
            put(same, std::move(unused));
            count_unused(1);
            _returned.notify_all();
        }
    } catch (const std::bad_alloc&) {
        // Keeping it was only an optimisation.
    }
}

void key_pool::give_back(key&& unused) noexcept
{
    unused.returned = std::chrono::steady_clock::now();
    keep_unused(std::move(unused), [](std::deque<key>& to, key&& last) { to.push_back(std::move(last)); });
}

void key_pool::add(key&& fresh) noexcept
{
    keep_unused(std::move(fresh), [](std::deque<key>& to, key&& first) { to.push_front(std::move(first)); });
}

bool key_pool::wait_for_unused(std::unique_lock<std::mutex>& lock, std::uint32_t entries,
                               std::chrono::steady_clock::time_point deadline)
{
    const std::deque<key>& same = _classes[class_of(entries)].unused;
    while (num_ready(entries) == 0 && !(is_at_limit() && num_unused() != 0)) {
        if (std::chrono::steady_clock::now() >= deadline) {
            return false;
        }
        const auto rested = same.empty() ? deadline : same.front().returned + longest_rest; // nobody tells when it has
        _returned.wait_until(lock, std::min(deadline, rested));
    }
    return true;
}

std::vector<key_pool::key> key_pool::take_idle(std::uint32_t entries, std::size_t least)
{
    size_class& same        = _classes[class_of(entries)];
    const std::size_t ready = num_ready(entries); // the first ones
    const std::size_t spare = ready - std::min(least, ready);
    const auto count        = static_cast<std::ptrdiff_t>(std::min(spare, same.fewest_unused));
    // The first ones were not needed for the longest time.
    const auto end = same.unused.begin() + count;
    std::vector<key> idle(std::make_move_iterator(same.unused.begin()), std::make_move_iterator(end));
    same.unused.erase(same.unused.begin(), end);
    count_unused(0 - idle.size());
    same.fewest_unused = same.unused.size();
    return idle;
}

std::size_t key_pool::num_ready(std::uint32_t entries) const
{
    const size_class& same = _classes[class_of(entries)];
    const auto all         = std::views::iota(std::size_t{0}, same.unused.size());
    return static_cast<std::size_t>(
        std::ranges::partition_point(all, [&](std::size_t index) { return is_ready(same, index); }) - all.begin());
}

bool key_pool::has_unused(std::uint32_t entries) const
{
    return class_with_unused(class_of(entries)) != num_classes;
}

std::size_t key_pool::class_with_unused(std::size_t first) const
{
    while (first < num_classes && _classes[first].unused.empty()) {
        ++first;
    }
    return first;
}

void key_pool::clear() noexcept
{
    for (size_class& same : _classes) {
        same.unused.clear();
    }
    _num_unused.store(0, std::memory_order_relaxed);
}

} // namespace ucxl::mlx5
