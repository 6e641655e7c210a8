#include "alias_table.h"

#include "abi/log.h"
#include "sys/hash.h"
#include "sys/rollback.h"

#include <algorithm>
#include <cstring>
#include <exception>

namespace ucxl::mlx5
{

// The beginning of a token is as good as all of it: tokens are random.
std::size_t alias_table::hash_of_key::operator()(const exported_key& owner) const
{
    std::uint64_t start = 0;
    std::memcpy(&start, owner.token.data(), sizeof(start));
    return mix((std::uint64_t{owner.vhca_id} << 32 | owner.key) ^ (owner.created << 40) ^ start);
}

alias_table::alias_table(ibv_pd* pd, std::size_t max_unused) : _pd(pd), _max_unused(max_unused)
{
    ucs_list_head_init(&_unused);
}

alias_table::entry* alias_table::find(const exported_key& owner)
{
    const auto found = _entries.find(owner);
    if (found == _entries.end()) {
        return nullptr;
    }
    entry& known = found->second;
    if (known.users++ == 0) {
        ucs_list_del(&known.unused);
        --_num_unused;
    }
    return &known;
}

bool alias_table::is_in_making(const exported_key& owner) const
{
    return std::ranges::contains(_in_making, owner);
}

result<key_alias> alias_table::make(std::unique_lock<std::mutex>& guard, const exported_key& owner)
{
    _in_making.push_back(owner);
    guard.unlock();
    const rollback ended([&] {
        guard.lock();
        std::erase(_in_making, owner);
        _is_made.notify_all();
    });
    return key_alias::create(_pd, owner.vhca_id, owner.key, owner.token);
}

alias_table::entry* alias_table::put(const exported_key& owner, key_alias&& alias)
{
    entry fresh{.unused = {}, .alias = std::move(alias), .owner = owner, .users = 1};
    entry& put = _entries.emplace(owner, std::move(fresh)).first->second;
    _size.store(_entries.size(), std::memory_order_relaxed);
    return &put;
}

result<alias_table::entry*> alias_table::take(const exported_key& owner)
{
    std::unique_lock guard(_lock);
    _is_made.wait(guard, [&] { return !is_in_making(owner); });
    if (entry* const known = find(owner)) {
        return known;
    }
    auto alias = UCXL_TRY(make(guard, owner));
    return put(owner, std::move(alias));
}

void alias_table::hold(entry* used)
{
    const std::lock_guard guard(_lock);
    ++used->users;
}

alias_table::entries::node_type alias_table::keep_unused(entry& unused) noexcept
{
    ucs_list_add_tail(&_unused, &unused.unused);
    if (++_num_unused <= _max_unused) {
        return {};
    }
    entry* const oldest = ucs_list_extract_head(&_unused, entry, unused);
    --_num_unused;
    auto dropped = _entries.extract(oldest->owner);
    _size.store(_entries.size(), std::memory_order_relaxed);
    return dropped;
}

void alias_table::give_back(entry* used) noexcept
{
    entries::node_type dropped;
    const std::lock_guard guard(_lock);
    if (--used->users == 0) {
        dropped = keep_unused(*used);
    }
}

void alias_table::expect(const exported_handle& handle) noexcept
{
    if (handle.num_announced == 0) {
        return;
    }
    try {
        const std::lock_guard guard(_lock);
        for (std::size_t i = 0; i < handle.num_announced && _expected.size() < max_expected; ++i) {
            exported_key& owner = _expected.emplace_back(handle.key);
            owner.key           = handle.announced[i].key;
            owner.created       = handle.announced[i].created;
        }
        if (!_maker.joinable()) {
            _maker = std::jthread([this](const std::stop_token& stop) { make_expected(stop); });
        }
        _is_expected.notify_one();
    } catch (const std::exception& failure) {
        ucs_debug("announced keys get their aliases later: %s", failure.what());
    }
}

void alias_table::make_expected(const std::stop_token& stop)
{
    for (;;) {
        std::unique_lock guard(_lock);
        if (!_is_expected.wait(guard, stop, [&] { return !_expected.empty(); })) {
            return;
        }
        const exported_key owner = _expected.front();
        _expected.pop_front();
        if (_entries.contains(owner) || is_in_making(owner) || _num_unused >= _max_unused) {
            continue;
        }
        try {
            auto alias = make(guard, owner);
            if (!alias) {
                ucs_debug("an announced key has no alias: %s", alias.error().message.c_str());
                continue;
            }
            entry* const made  = put(owner, std::move(*alias));
            made->users        = 0;
            const auto dropped = keep_unused(*made);
            guard.unlock(); // before an alias ends
        } catch (const std::exception& failure) {
            ucs_debug("an announced key has no alias: %s", failure.what());
        }
    }
}

} // namespace ucxl::mlx5
