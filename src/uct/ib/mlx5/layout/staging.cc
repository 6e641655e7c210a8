#include "staging.h"

#include <algorithm>
#include <new>

#include "umr_request.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::size_t unit = pointer_alignment;

} // namespace

bool staging::take_from(slab& one, std::size_t size, std::size_t& offset)
{
    const auto fits = std::ranges::find_if(one.unused, [&](const auto& gap) { return gap.second >= size; });
    if (fits == one.unused.end()) {
        return false;
    }
    offset                 = fits->first;
    const std::size_t left = fits->second - size;
    auto gap               = one.unused.extract(fits); // moved, because a new one may need memory
    if (left > 0) {
        gap.key()    = offset + size;
        gap.mapped() = left;
        one.unused.insert(std::move(gap));
    }
    return true;
}

result<void> staging::add_slab(std::size_t size)
{
    slab added;
    added.memory.reset(static_cast<std::byte*>(::operator new(size, alignment)));
    added.registration.reset(ibv_reg_mr(_pd, added.memory.get(), size, IBV_ACCESS_LOCAL_WRITE));
    if (added.registration == nullptr) {
        return fail_errno("registering memory for translation entries");
    }
    added.unused.emplace(0, size);
    _slabs.push_back(std::move(added));
    return {};
}

result<staging::room> staging::take(std::size_t size)
{
    size               = (size + unit - 1) / unit * unit;
    std::size_t offset = 0;
    std::size_t index  = 0;
    while (index < _slabs.size() && !take_from(_slabs[index], size, offset)) {
        ++index;
    }
    if (index == _slabs.size()) {
        UCXL_TRY(add_slab(std::max(size, slab_bytes)));
        take_from(_slabs.back(), size, offset);
    }
    slab& from = _slabs[index];
    return room{std::span(from.memory.get() + offset, size), from.registration->lkey, index};
}

void staging::give_back(const room& unused) noexcept
{
    try {
        add_gap(unused);
    } catch (const std::bad_alloc&) {
        // Nobody gets it before the domain closes.
    }
}

void staging::add_gap(const room& unused)
{
    slab& to             = _slabs[unused.slab];
    const auto offset    = static_cast<std::size_t>(unused.bytes.data() - to.memory.get());
    auto [added, is_new] = to.unused.emplace(offset, unused.bytes.size());
    if (const auto next = std::next(added); next != to.unused.end() && offset + added->second == next->first) {
        added->second += next->second;
        to.unused.erase(next);
    }
    if (added != to.unused.begin()) {
        if (const auto before = std::prev(added); before->first + before->second == offset) {
            before->second += added->second;
            to.unused.erase(added);
        }
    }
}

} // namespace ucxl::mlx5
