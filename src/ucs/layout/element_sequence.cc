#include "element_sequence.h"

#include "checked.h"
#include "normalise.h"

#include <format>

namespace ucxl
{

element_sequence::element_sequence(const placed& item, std::uint64_t repeat, std::span<const dim> dims)
    : _item(item), _repeat(repeat)
{
    for (const dim& next : dims) {
        std::int64_t inner;
        if (next.count == 1) {
            continue;
        }
        if (!_dims.empty() && checked::mul(next.count, next.stride, inner) && _dims.back().stride == inner) {
            _dims.back() = {_dims.back().count * next.count, next.stride};
        } else {
            _dims.push_back(next);
        }
    }
    _spans.assign(_dims.size() + 1, 1);
    for (std::size_t k = _dims.size(); k-- > 0;) {
        _spans[k] = _spans[k + 1] * _dims[k].count;
    }
}

std::int64_t element_sequence::offset(std::uint64_t index) const
{
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < _dims.size(); ++k) {
        sum += static_cast<std::int64_t>(index / _spans[k + 1]) * _dims[k].stride;
        index %= _spans[k + 1];
    }
    return sum;
}

result<void> element_sequence::append(assembly& parts, std::uint64_t first, std::uint64_t count,
                                      std::vector<nest_item>& items) const
{
    return append_level(parts, 0, first, count, _item.offset, items);
}

result<void> element_sequence::append_level(assembly& parts, std::size_t level, std::uint64_t first,
                                            std::uint64_t count, std::int64_t offset,
                                            std::vector<nest_item>& items) const
{
    if (count == 0) {
        return {};
    }
    if (items.size() >= limits::max_entries) {
        return fail(errc::exceeds_limit,
                    std::format("the cycles expand to more than max_entries ({}) entries", limits::max_entries));
    }
    if (level == _dims.size()) {
        items.push_back({_item.source, _item.node, offset, 0});
        return {};
    }
    const std::uint64_t inner = _spans[level + 1];
    const std::int64_t stride = _dims[level].stride;
    const auto at             = [&](std::uint64_t digit) { return offset + static_cast<std::int64_t>(digit) * stride; };
    const std::uint64_t digit = first / inner;
    const std::uint64_t skip  = first % inner;
    if (skip + count < inner) {
        return append_level(parts, level + 1, skip, count, at(digit), items);
    }
    const std::uint64_t head = skip == 0 ? 0 : inner - skip;
    const std::uint64_t full = (count - head) / inner;
    const std::uint64_t next = digit + (head == 0 ? 0 : 1);
    UCXL_TRY(append_level(parts, level + 1, skip, head, at(digit), items));
    if (full > 0) {
        std::vector<dim> loops(_dims.begin() + static_cast<std::ptrdiff_t>(level), _dims.end());
        loops.front().count = full;
        auto loop           = UCXL_TRY(parts.repeat({_item.source, _item.node, at(next)}, loops));
        items.push_back({loop.source, loop.node, loop.offset, 0});
    }
    return append_level(parts, level + 1, 0, count - head - full * inner, at(next + full), items);
}

bool element_sequence::add_breaks(std::vector<std::uint64_t>& breaks) const
{
    for (std::uint64_t span : _spans) {
        if (span % _repeat == 0) {
            breaks.push_back(span / _repeat);
        } else if (_repeat % span != 0 && span != total()) {
            return false;
        }
    }
    return true;
}

} // namespace ucxl
