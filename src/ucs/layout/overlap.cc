// Overlap does not depend on the order of visiting. So a layout is a set of strided nests with positive strides, one
// for each path from the root to a block. Two nests, or a nest and itself, share a byte if some sum of their strides
// falls into a range as long as their blocks. The search sweeps the nests in the order of their lower bounds and
// compares only nests whose bounds overlap.
#include "overlap.h"

#include "reach.h"

#include <algorithm>
#include <vector>

namespace ucxl
{

namespace
{

constexpr std::uint32_t no_chain = UINT32_MAX;

struct chain {
    std::uint32_t first; // strides()
    std::uint32_t num;
    std::int64_t length; // of the block
};

struct strided_nest {
    std::int64_t lb;
    std::int64_t ub;
    std::uint32_t source;
    std::uint32_t chain; // no_chain: one block
};

class detector
{
public:
    explicit detector(const layout& layout) : _of(layout) {}

    overlap run()
    {
        const std::uint64_t number = count_nests();
        if (number > limits::max_overlap_nests || number * _of.depth() > limits::max_overlap_strides) {
            return overlap::maybe;
        }
        _nests.reserve(number);
        collect(_of.root().child, _of.root().source, _of.root().offset, _of.root().offset);
        for (const strided_nest& nest : _nests) {
            if (note(overlaps_itself(nest)) == overlap::some) {
                return overlap::some;
            }
            if (_budget == 0) {
                return overlap::maybe;
            }
        }
        return sweep();
    }

private:
    std::uint64_t count_nests() const
    {
        std::vector<std::uint64_t> below(_of.nodes().size(), 1);
        for (std::size_t i = 0; i < below.size(); ++i) {
            const layout_node& node = _of.nodes()[i];
            below[i]                = node.is_block() ? 1 : 0;
            for (const layout_entry& entry : _of.entries_of(node)) {
                below[i] = std::min(below[i] + below[entry.child], limits::max_overlap_nests + 1);
            }
        }
        return below.back();
    }

    // One undecided pair leaves the result open, unless another pair overlaps.
    overlap note(reached answer)
    {
        _is_open = _is_open || answer == reached::unknown;
        return answer == reached::yes ? overlap::some : overlap::none;
    }

    void collect(std::uint32_t index, std::uint32_t source, std::int64_t lb, std::int64_t ub)
    {
        const layout_node& node = _of.nodes()[index];
        if (node.is_block()) {
            const auto length = static_cast<std::int64_t>(node.packed_length);
            std::uint32_t own = no_chain;
            if (!_path.empty()) {
                own = static_cast<std::uint32_t>(_chains.size());
                _chains.push_back(
                    {static_cast<std::uint32_t>(_strides.size()), static_cast<std::uint32_t>(_path.size()), length});
                _strides.insert(_strides.end(), _path.begin(), _path.end());
            }
            _nests.push_back({lb, ub + length, source, own});
            return;
        }
        const auto most = static_cast<std::int64_t>(node.count - 1);
        for (const layout_entry& entry : _of.entries_of(node)) {
            const std::int64_t travel = most * entry.stride;
            if (most > 0) {
                _path.push_back({std::abs(entry.stride), most});
            }
            collect(entry.child, source + entry.source, lb + entry.offset + std::min<std::int64_t>(travel, 0),
                    ub + entry.offset + std::max<std::int64_t>(travel, 0));
            if (most > 0) {
                _path.pop_back();
            }
        }
    }

    std::span<const steps> strides_of(const strided_nest& nest) const
    {
        return nest.chain == no_chain ? std::span<const steps>{}
                                      : std::span(_strides).subspan(_chains[nest.chain].first, _chains[nest.chain].num);
    }

    std::int64_t length_of(const strided_nest& nest) const
    {
        return nest.chain == no_chain ? nest.ub - nest.lb : _chains[nest.chain].length;
    }

    // Two different iterations differ in some index. The first index that differs may be taken as positive.
    reached overlaps_itself(const strided_nest& nest)
    {
        const std::span<const steps> strides = strides_of(nest);
        const std::int64_t length            = length_of(nest);
        reached answer                       = reached::no;
        for (const steps& each : strides) {
            if (each.step == 0) {
                return reached::yes;
            }
        }
        for (std::size_t first = 0; first < strides.size() && answer != reached::yes; ++first) {
            std::int64_t from = strides[first].step;
            std::vector<steps> terms{{strides[first].step, strides[first].most - 1}};
            for (const steps& inner : strides.subspan(first + 1)) {
                from -= inner.step * inner.most;
                terms.push_back({inner.step, 2 * inner.most});
            }
            const reached here = range_reached(from, std::move(terms), 1 - length, length - 1, _budget);
            answer             = here == reached::no ? answer : here;
        }
        return answer;
    }

    reached overlaps(const strided_nest& a, const strided_nest& b)
    {
        std::int64_t from = a.lb - b.lb;
        std::vector<steps> terms(strides_of(a).begin(), strides_of(a).end());
        for (const steps& other : strides_of(b)) {
            from -= other.step * other.most;
            terms.push_back(other);
        }
        return range_reached(from, std::move(terms), 1 - length_of(a), length_of(b) - 1, _budget);
    }

    overlap sweep()
    {
        const auto by_lb = [](const strided_nest& a, const strided_nest& b) {
            return a.source != b.source ? a.source < b.source : a.lb < b.lb;
        };
        if (!std::ranges::is_sorted(_nests, by_lb)) {
            std::ranges::sort(_nests, by_lb);
        }
        std::vector<const strided_nest*> open; // the nests of this source that end after the current one begins
        for (const strided_nest& nest : _nests) {
            std::erase_if(open, [&](const strided_nest* before) {
                return before->source != nest.source || before->ub <= nest.lb;
            });
            for (const strided_nest* before : open) {
                if (_budget == 0) {
                    return overlap::maybe;
                }
                if (note(overlaps(*before, nest)) == overlap::some) {
                    return overlap::some;
                }
            }
            open.push_back(&nest);
        }
        return _is_open ? overlap::maybe : overlap::none;
    }

    const layout& _of;
    std::vector<steps> _path;
    std::vector<steps> _strides;
    std::vector<chain> _chains;
    std::vector<strided_nest> _nests;
    std::uint64_t _budget = limits::max_overlap_steps;
    bool _is_open         = false;
};

} // namespace

overlap find_overlap(const layout& layout)
{
    return layout.is_contiguous() ? overlap::none : detector(layout).run();
}

overlap layout::overlap() const
{
    return _overlap.get([this] { return find_overlap(*this); });
}

} // namespace ucxl
