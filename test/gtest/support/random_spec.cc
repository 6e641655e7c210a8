#include "random_spec.h"

#include <algorithm>

namespace ucxl::test
{

namespace
{

struct true_range {
    std::int64_t lb = 0;
    std::int64_t ub = 0;
};

// Over all sources: generous, but then `never` needs no cleverness.
true_range range_of(const spec& of)
{
    true_range range{INT64_MAX, INT64_MIN};
    for (const auto& [source, bounds] : bounds_of(of)) {
        if (bounds.true_ub > bounds.true_lb) {
            range.lb = std::min(range.lb, bounds.true_lb);
            range.ub = std::max(range.ub, bounds.true_ub);
        }
    }
    return range.lb > range.ub ? true_range{} : range;
}

class generator
{
public:
    generator(random& from, const random_options& options) : _random(from), _options(options) {}

    // Uses at most so many bytes and blocks.
    spec_ptr make(std::uint64_t bytes, std::uint64_t blocks, unsigned depth, std::uint32_t sources)
    {
        if (depth == 0 || blocks <= 1 || bytes <= 1 || _random.one_in(10)) {
            return block(bytes);
        }
        switch (_random.below(_options.resized_items ? 6 : 5)) {
        case 0:
            return contig(bytes, blocks, depth, sources);
        case 1:
        case 2:
            return strided(bytes, blocks, depth, sources);
        case 3:
            return iov(bytes, blocks, depth, sources);
        case 4:
            return interleaved(bytes, blocks, depth, sources);
        default:
            return resized(bytes, blocks, depth, sources);
        }
    }

private:
    bool never() const { return _options.overlapping == overlapping::never; }
    bool is_empty_now() { return _options.empty_parts && _random.one_in(24); }

    spec_ptr block(std::uint64_t bytes)
    {
        static constexpr std::uint64_t usual[] = {1, 2, 3, 4, 8, 8, 12, 16, 24, 32, 64, 100, 256};
        if (is_empty_now()) {
            return spec::block(0);
        }
        const std::uint64_t length = usual[_random.below(std::size(usual))];
        return spec::block(std::clamp<std::uint64_t>(length, 1, std::max<std::uint64_t>(1, bytes)));
    }

    // How much of what is left goes into this level: mostly little, so that something is left for the levels below.
    std::uint64_t share_of(std::uint64_t left)
    {
        left = std::max<std::uint64_t>(1, left);
        return 1 + _random.below(_random.one_in(3) ? left : std::min<std::uint64_t>(left, 2 + left / 8));
    }

    std::uint64_t count(std::uint64_t most)
    {
        return is_empty_now() ? 0 : 1 + _random.below(std::min<std::uint64_t>(most, _random.one_in(4) ? most : 8));
    }

    // Overlapping bytes come from an item's extent smaller than its bytes.
    spec_ptr contig(std::uint64_t bytes, std::uint64_t blocks, unsigned depth, std::uint32_t sources)
    {
        const std::uint64_t times = count(share_of(std::min(bytes, blocks)));
        const std::uint64_t share = std::max<std::uint64_t>(1, times);
        spec_ptr item             = make(bytes / share, blocks / share, depth - 1, sources);
        const true_range range    = range_of(*item);
        if (never() && extent_of(*item) < range.ub - range.lb) {
            item = spec::resized(item, range.lb, range.ub - range.lb);
        }
        return spec::contig(times, item);
    }

    // Appended from the innermost on, so that each stride can pass what is inside.
    std::vector<dim> dims(std::uint64_t& times, std::uint64_t most, std::int64_t span)
    {
        std::vector<dim> made;
        times = 1;
        for (std::uint64_t left = 1 + _random.below(3); left > 0; --left) {
            const std::uint64_t turns = count(std::max<std::uint64_t>(1, most / std::max<std::uint64_t>(1, times)));
            made.insert(made.begin(), {turns, stride(span)});
            span += std::abs(made.front().stride) * static_cast<std::int64_t>(turns > 0 ? turns - 1 : 0);
            times *= turns;
        }
        return made;
    }

    std::int64_t stride(std::int64_t span)
    {
        std::int64_t distance = span;
        if (!_random.one_in(3)) {
            distance += _random.between(0, 16) * (_random.one_in(2) ? 1 : 8);
        }
        if (!never() && _random.one_in(6)) {
            distance = _random.between(0, span + 8);
        }
        return _options.negative_strides && _random.one_in(4) ? -distance : distance;
    }

    spec_ptr strided(std::uint64_t bytes, std::uint64_t blocks, unsigned depth, std::uint32_t sources)
    {
        const std::uint64_t most = share_of(std::min(bytes, blocks));
        spec_ptr item            = make(bytes / most, blocks / most, depth - 1, sources);
        const true_range range   = range_of(*item);
        std::uint64_t times;
        return spec::strided(item, dims(times, most, range.ub - range.lb));
    }

    // Where the next of several parts goes, if parts must not overlap.
    std::int64_t offset_after(std::int64_t& end, const true_range& range)
    {
        const std::int64_t gap = _random.one_in(3) ? 0 : _random.between(0, 40);
        const std::int64_t at  = end + gap - range.lb;
        end                    = at + range.ub;
        if (never() || _random.one_in(2)) {
            return at;
        }
        return _random.between(-64, std::max<std::int64_t>(64, end));
    }

    spec_ptr iov(std::uint64_t bytes, std::uint64_t blocks, unsigned depth, std::uint32_t sources)
    {
        const std::uint64_t number = 1 + _random.below(std::min<std::uint64_t>({bytes, blocks, 12}));
        std::vector<spec_part> parts;
        std::int64_t end = _random.between(-32, 32);
        spec_ptr item;
        for (std::uint64_t i = 0; i < number; ++i) {
            if (item == nullptr || !_random.one_in(2)) {
                item = make(bytes / number, blocks / number, depth - 1, 1);
            }
            const auto source = static_cast<std::uint32_t>(_random.below(sources));
            parts.push_back({source, offset_after(end, range_of(*item)), item, 1, {}});
        }
        if (_random.one_in(3)) {
            _random.shuffle(parts);
        }
        return spec::iov(std::move(parts));
    }

    spec_ptr interleaved(std::uint64_t bytes, std::uint64_t blocks, unsigned depth, std::uint32_t sources)
    {
        const std::uint64_t number = 1 + _random.below(std::min<std::uint64_t>({bytes, blocks, 4}));
        std::vector<spec_part> parts;
        std::int64_t end = _random.between(-32, 32);
        std::vector<dim> same;
        for (std::uint64_t i = 0; i < number; ++i) {
            const std::uint64_t most = share_of(std::min(bytes, blocks) / number);
            spec_part part;
            part.source            = static_cast<std::uint32_t>(_random.below(sources));
            part.item              = make(bytes / number / most, blocks / number / most, depth - 1, 1);
            part.repeat            = _random.one_in(3) ? 1 : static_cast<std::uint64_t>(_random.between(1, 5));
            const true_range range = range_of(*part.item);
            std::uint64_t times;
            part.dims = dims(times, most, range.ub - range.lb);
            place(part, range, end);
            parts.push_back(std::move(part));
        }
        return spec::interleaved(std::move(parts));
    }

    void place(spec_part& part, const true_range& item, std::int64_t& end)
    {
        true_range range = item;
        for (const dim& along : part.dims) {
            const std::int64_t turns = static_cast<std::int64_t>(along.count > 0 ? along.count - 1 : 0);
            (along.stride < 0 ? range.lb : range.ub) += turns * along.stride;
        }
        part.offset = offset_after(end, range);
    }

    spec_ptr resized(std::uint64_t bytes, std::uint64_t blocks, unsigned depth, std::uint32_t sources)
    {
        spec_ptr item          = make(bytes, blocks, depth - 1, sources);
        const true_range range = range_of(*item);
        return spec::resized(item, range.lb + _random.between(-8, 8),
                             _random.between(0, 2 * (range.ub - range.lb) + 8));
    }

    random& _random;
    const random_options& _options;
};

} // namespace

spec_ptr random_spec(random& from, const random_options& options)
{
    generator made(from, options);
    spec_ptr of = made.make(options.max_bytes, options.max_blocks, options.max_depth, options.num_sources);
    if (options.overlapping != overlapping::always || has_overlap(*of)) {
        return of;
    }
    // The first byte once more, at the end.
    const auto segments = segments_of(*of);
    if (segments.empty()) {
        return spec::strided(spec::block(2), {{2, 1}});
    }
    return spec::iov({{0, 0, of, 1, {}}, {segments[0].source, segments[0].offset, spec::block(1), 1, {}}});
}

} // namespace ucxl::test
