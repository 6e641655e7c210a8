#include "layouts.h"

#include "support/check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace ucxl::two_process
{

namespace
{

using test::spec;
using test::spec_part;
using test::spec_ptr;

constexpr std::uint64_t max_blocks = 4096;

struct span_of_bytes {
    std::int64_t lb = 0;
    std::int64_t ub = 0;
};

// Over all sources together: a layout moved beyond this range cannot overlap the others.
span_of_bytes span_of(const spec& spec)
{
    span_of_bytes all{INT64_MAX, INT64_MIN};
    for (const auto& segment : test::segments_of(spec)) {
        all.lb = std::min(all.lb, segment.offset);
        all.ub = std::max(all.ub, segment.offset + static_cast<std::int64_t>(segment.length));
    }
    return all.lb > all.ub ? span_of_bytes{} : all;
}

class generator
{
public:
    generator(test::random& random, std::uint64_t length, std::uint32_t max_sources)
        : _random(random), _min_block(std::max<std::uint64_t>(1, length / max_blocks)), _max_sources(max_sources)
    {
    }

    spec_ptr make(std::uint64_t length, unsigned depth)
    {
        if (depth == 0 || length < 2 * _min_block) {
            return spec::block(length);
        }
        switch (_random.below(depth > 2 ? 8 : 9)) {
        case 0:
            return contig(length, depth);
        case 1:
        case 2:
        case 3:
            return strided(length, depth);
        case 4:
        case 5:
            return iov(length, depth);
        case 6:
        case 7:
            return interleaved(length, depth);
        default:
            return spec::block(length);
        }
    }

private:
    // A divisor of the length that leaves pieces of at least the smallest block.
    std::uint64_t count_for(std::uint64_t length)
    {
        static constexpr std::array<std::uint64_t, 14> usual = {2, 3, 4, 5, 7, 8, 12, 16, 25, 32, 64, 100, 128, 512};
        std::uint64_t count                                  = 1;
        for (int tries = 0; tries < 4; ++tries) {
            const std::uint64_t next = _random.one_in(8) ? length / _min_block : usual[_random.below(usual.size())];
            if (next > count && length % next == 0 && length / next >= _min_block) {
                count = next;
            }
        }
        return count;
    }

    std::int64_t gap() { return _random.one_in(3) ? 0 : _random.between(1, _random.one_in(2) ? 8 : 96); }

    spec_ptr contig(std::uint64_t length, unsigned depth)
    {
        const std::uint64_t count = count_for(length);
        return spec::contig(count, make(length / count, depth - 1));
    }

    // Strides grow from one dimension to the next, in any order of the dimensions.
    std::vector<dim> dims_for(std::uint64_t count, span_of_bytes& covered)
    {
        std::vector<dim> dims;
        std::int64_t span = covered.ub - covered.lb;
        while (dims.size() < 3 && (count > 1 || dims.empty())) {
            const std::uint64_t turns = dims.size() == 2 ? count : count_for_dim(count);
            const std::int64_t stride = span + gap();
            const std::int64_t reach  = stride * static_cast<std::int64_t>(turns - 1);
            const bool backwards      = _random.one_in(3);
            (backwards ? covered.lb : covered.ub) += backwards ? -reach : reach;
            dims.push_back({turns, backwards ? -stride : stride});
            span += reach;
            count /= turns;
        }
        _random.shuffle(dims);
        return dims;
    }

    std::uint64_t count_for_dim(std::uint64_t count)
    {
        for (const std::uint64_t turns : {7u, 5u, 4u, 3u, 2u}) {
            if (count % turns == 0 && _random.one_in(2)) {
                return turns;
            }
        }
        return count;
    }

    spec_ptr strided(std::uint64_t length, unsigned depth)
    {
        const std::uint64_t count = count_for(length);
        spec_ptr item             = make(length / count, depth - 1);
        span_of_bytes covered     = span_of(*item);
        auto dims                 = dims_for(count, covered);
        return spec::strided(std::move(item), std::move(dims));
    }

    // Moves `range` behind everything placed so far.
    std::int64_t place(const span_of_bytes& range)
    {
        const std::int64_t offset = _end + gap() - range.lb;
        _end                      = offset + range.ub;
        return offset;
    }

    std::vector<std::uint64_t> cut(std::uint64_t length, std::uint64_t parts)
    {
        std::vector<std::uint64_t> lengths;
        for (; parts > 1 && length > _min_block; --parts) {
            const std::uint64_t mean = length / parts;
            const std::uint64_t most = std::max<std::uint64_t>(_min_block, 2 * mean);
            lengths.push_back(std::min(length - 1, _min_block + _random.below(most - _min_block + 1)));
            length -= lengths.back();
        }
        lengths.push_back(length);
        return lengths;
    }

    std::uint32_t source() { return static_cast<std::uint32_t>(_random.below(_max_sources)); }

    spec_ptr iov(std::uint64_t length, unsigned depth)
    {
        const bool many = _random.one_in(4);
        const std::uint64_t parts =
            many ? 1 + _random.below(std::min(length / _min_block, max_blocks / 2)) : 1 + _random.below(8);
        const std::int64_t outer = std::exchange(_end, _random.between(-200, 200));
        std::vector<spec_part> list;
        for (const std::uint64_t part : cut(length, parts)) {
            spec_ptr item         = many ? spec::block(part) : nested(part, depth);
            const std::int64_t at = place(span_of(*item));
            list.push_back({nested_source(*item), at, std::move(item), 1, {}});
        }
        shuffle_sometimes(list);
        _end = outer;
        return spec::iov(std::move(list));
    }

    spec_ptr nested(std::uint64_t length, unsigned depth)
    {
        const std::int64_t outer = _end;
        spec_ptr item            = make(length, depth - 1);
        _end                     = outer;
        return item;
    }

    std::uint32_t nested_source(const spec& item)
    {
        const std::uint32_t used = test::num_sources_of(item);
        return used >= _max_sources ? 0 : static_cast<std::uint32_t>(_random.below(_max_sources - used + 1));
    }

    void shuffle_sometimes(std::vector<spec_part>& parts)
    {
        if (_random.one_in(2)) {
            _random.shuffle(parts);
        }
    }

    // Every part takes whole elements; the rest becomes one more element.
    spec_ptr interleaved(std::uint64_t length, unsigned depth)
    {
        static constexpr std::array<std::uint64_t, 8> usual = {1, 2, 4, 8, 12, 24, 64, 200};
        const std::int64_t outer                            = std::exchange(_end, _random.between(-100, 100));
        std::vector<spec_part> list;
        for (const std::uint64_t part : cut(length, 1 + _random.below(4))) {
            const std::uint64_t element = std::min(part, std::max(_min_block, usual[_random.below(usual.size())]));
            add_elements(list, element, part / element, depth);
            if (part % element != 0) {
                add_elements(list, part % element, 1, depth);
            }
        }
        _end = outer;
        return spec::interleaved(std::move(list));
    }

    void add_elements(std::vector<spec_part>& list, std::uint64_t element, std::uint64_t count, unsigned depth)
    {
        spec_part part;
        part.item   = element > 1 && _random.one_in(3) ? nested(element, std::min(depth, 2u)) : spec::block(element);
        part.source = nested_source(*part.item);
        part.repeat = static_cast<std::uint64_t>(_random.between(1, 5));
        span_of_bytes covered = span_of(*part.item);
        part.dims             = dims_for(count, covered);
        part.offset           = place(covered);
        list.push_back(std::move(part));
    }

    test::random& _random;
    std::uint64_t _min_block;
    std::uint32_t _max_sources;
    std::int64_t _end = 0;
};

spec_ptr empty_spec(test::random& random)
{
    switch (random.below(4)) {
    case 0:
        return spec::block(0);
    case 1:
        return spec::strided(spec::block(8), {{4, 16}, {0, 64}});
    case 2:
        return spec::iov({});
    default:
        return spec::contig(0, spec::block(24));
    }
}

struct created_element {
    std::optional<ucx_layout::layout> owner;
    ucp_layout_element_t element{};
};

created_element create_element(const spec& described)
{
    if (described.what == spec::kind::block) {
        return {std::nullopt, {.length = described.length, .layout = nullptr}};
    }
    created_element element{create_layout(described), {}};
    element.element = element.owner->as_element();
    return element;
}

std::vector<ucp_layout_dim_t> dims_of(const std::vector<dim>& dims)
{
    std::vector<ucp_layout_dim_t> list;
    for (const dim& along : dims) {
        list.push_back({.count = along.count, .stride = along.stride});
    }
    return list;
}

ucx_layout::result<ucx_layout::layout> create_list(const spec& spec)
{
    std::vector<created_element> items;
    std::vector<ucp_layout_iov_t> list;
    for (const auto& part : spec.parts) {
        items.push_back(create_element(*part.item));
        list.push_back({.source = part.source, .offset = part.offset, .element = items.back().element});
    }
    return ucx_layout::layout::concatenate(list);
}

ucx_layout::result<ucx_layout::layout> create_interleaved(const spec& spec)
{
    std::vector<created_element> items;
    std::vector<std::vector<ucp_layout_dim_t>> dims;
    std::vector<ucp_layout_interleaved_t> list;
    for (const auto& part : spec.parts) {
        items.push_back(create_element(*part.item));
        dims.push_back(dims_of(part.dims));
        list.push_back({.source   = part.source,
                        .offset   = part.offset,
                        .element  = items.back().element,
                        .repeat   = part.repeat,
                        .dims     = dims.back().data(),
                        .num_dims = static_cast<unsigned>(dims.back().size())});
    }
    return ucx_layout::layout::interleave(list);
}

ucx_layout::result<ucx_layout::layout> create_resized(const spec& spec)
{
    const auto item = create_element(*spec.item);
    ucp_layout_params_t params{};
    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_EXTENT;
    params.kind       = UCP_LAYOUT_KIND_CONTIG;
    params.element    = item.element;
    params.lb         = spec.lb;
    params.extent     = static_cast<std::size_t>(spec.extent);
    return ucx_layout::layout::create(params);
}

ucx_layout::result<ucx_layout::layout> create(const spec& described)
{
    switch (described.what) {
    case spec::kind::block:
        return ucx_layout::layout::create_contig(1, {.length = described.length, .layout = nullptr});
    case spec::kind::contig:
        return ucx_layout::layout::create_contig(described.count, create_element(*described.item).element);
    case spec::kind::strided: {
        const auto item = create_element(*described.item);
        return ucx_layout::layout::create_strided(item.element, dims_of(described.dims));
    }
    case spec::kind::iov:
        return create_list(described);
    case spec::kind::interleaved:
        return create_interleaved(described);
    case spec::kind::resized:
        return create_resized(described);
    }
    return std::unexpected(UCS_ERR_INVALID_PARAM);
}

} // namespace

test::spec_ptr spec_of_length(test::random& random, std::uint64_t length, std::uint32_t max_sources)
{
    if (length == 0) {
        return empty_spec(random);
    }
    return generator(random, length, max_sources).make(length, 4);
}

ucx_layout::layout create_layout(const test::spec& spec)
{
    auto layout = create(spec);
    test::check(layout.has_value(), "no layout of {}: {}", to_string(spec),
                ucs_status_string(layout ? UCS_OK : layout.error()));
    return std::move(*layout);
}

} // namespace ucxl::two_process
