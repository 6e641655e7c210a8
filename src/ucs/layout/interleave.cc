// Interleaved layouts. The builder cuts the cycles into phases; in a phase every cycle takes the same number of
// elements from the same sources. Where the sources wrap their dimensions after 1 | b1 | b2 ... cycles, it nests the
// phase along that chain; otherwise it writes all cycles out.
#include "assembly.h"
#include "build.h"
#include "checked.h"
#include "element_sequence.h"
#include "normalise.h"

#include <algorithm>
#include <format>

namespace ucxl
{

namespace
{

result<void> failed(error&& error)
{
    return std::unexpected(std::move(error));
}

// The cycles [begin, end). In all of them every source takes its full repeat.
class phase
{
public:
    phase(assembly& parts, std::span<const element_sequence* const> sources, std::vector<nest_item>& items)
        : _parts(parts), _sources(sources), _items(items)
    {
    }

    result<void> append(std::uint64_t begin, std::uint64_t end)
    {
        if (_sources.size() == 1) {
            const std::uint64_t repeat = _sources[0]->repeat();
            return _sources[0]->append(_parts, begin * repeat, (end - begin) * repeat, _items);
        }
        if (!find_units()) {
            return append_cycles(begin, end, _items);
        }
        // Climb the chain of units to the largest aligned unit in the range, then descend.
        while (begin < end) {
            std::size_t level = 0;
            while (level + 1 < _units.size() && begin % _units[level + 1] == 0 && end - begin >= _units[level + 1]) {
                ++level;
            }
            const std::uint64_t unit = _units[level];
            std::uint64_t stop       = begin + (end - begin) / unit * unit;
            if (level + 1 < _units.size()) {
                stop = std::min(stop, (begin / _units[level + 1] + 1) * _units[level + 1]);
            }
            UCXL_TRY(append_piece(level, (stop - begin) / unit, begin));
            begin = stop;
        }
        return {};
    }

private:
    // Finds the cycle counts at which some source wraps. Returns false unless each is a multiple of the one before.
    bool find_units()
    {
        _units = {1};
        for (const element_sequence* source : _sources) {
            if (!source->add_breaks(_units)) {
                return false;
            }
        }
        std::ranges::sort(_units);
        _units.erase(std::ranges::unique(_units).begin(), _units.end());
        for (std::size_t i = 1; i < _units.size(); ++i) {
            if (_units[i] % _units[i - 1] != 0) {
                return false;
            }
        }
        return true;
    }

    result<void> append_cycles(std::uint64_t begin, std::uint64_t end, std::vector<nest_item>& items)
    {
        for (std::uint64_t cycle = begin; cycle < end; ++cycle) {
            for (const element_sequence* source : _sources) {
                UCXL_TRY(source->append(_parts, cycle * source->repeat(), source->repeat(), items));
            }
        }
        return {};
    }

    // The distance by which one unit of a level moves a source. The unit after it must exist.
    std::int64_t step(const element_sequence& source, std::size_t level, std::uint64_t cycle) const
    {
        return source.offset((cycle + _units[level]) * source.repeat()) - source.offset(cycle * source.repeat());
    }

    std::uint64_t radix(std::size_t level) const { return level == _top ? _count : _units[level + 1] / _units[level]; }

    bool is_uniform(std::size_t level, std::uint64_t cycle) const
    {
        return radix(level) == 1 || std::ranges::all_of(_sources, [&](const element_sequence* source) {
                   return step(*source, level, cycle) == step(*_sources[0], level, cycle);
               });
    }

    // A loop moves everything in it alike. Sources that move differently can therefore share only one loop, the pivot:
    // below it every cycle is written out, above it every iteration. Chooses the cheapest pivot; _pivot == _top + 1
    // means none.
    void choose_pivot(std::uint64_t cycle)
    {
        double best         = 0;
        const auto consider = [&](std::size_t pivot) {
            double cost = 1;
            for (std::size_t level = 0; level <= _top; ++level) {
                const bool written_out = pivot <= _top && level <= pivot ? level < pivot : !is_uniform(level, cycle);
                cost *= written_out ? static_cast<double>(radix(level)) : 1;
            }
            if (best == 0 || cost < best) {
                best   = cost;
                _pivot = pivot;
            }
        };
        consider(_top + 1);
        for (std::size_t pivot = 0; pivot <= _top; ++pivot) {
            consider(pivot);
        }
    }

    result<void> append_piece(std::size_t level, std::uint64_t count, std::uint64_t cycle)
    {
        _top   = level;
        _count = count;
        choose_pivot(cycle);
        return append_level(level, cycle, _items);
    }

    result<void> append_level(std::size_t level, std::uint64_t cycle, std::vector<nest_item>& items)
    {
        if (level == _pivot) {
            return append_pivot(level, cycle, items);
        }
        const bool is_innermost = level == 0;
        const auto append_inner = [&](std::uint64_t at, std::vector<nest_item>& into) {
            return is_innermost ? append_cycles(at, at + 1, into) : append_level(level - 1, at, into);
        };
        if (radix(level) == 1) {
            return append_inner(cycle, items);
        }
        if (is_uniform(level, cycle)) {
            std::vector<nest_item> inner;
            UCXL_TRY(append_inner(cycle, inner));
            for (nest_item& item : inner) {
                item.stride = step(*_sources[0], level, cycle);
            }
            return append_loop(radix(level), std::move(inner), items);
        }
        for (std::uint64_t i = 0; i < radix(level); ++i) {
            UCXL_TRY(append_inner(cycle + i * _units[level], items));
        }
        return {};
    }

    result<void> append_pivot(std::size_t level, std::uint64_t cycle, std::vector<nest_item>& items)
    {
        if (radix(level) == 1) {
            return append_cycles(cycle, cycle + _units[level], items);
        }
        std::vector<nest_item> inner;
        for (std::uint64_t i = 0; i < _units[level]; ++i) {
            for (const element_sequence* source : _sources) {
                const std::size_t before = inner.size();
                if (auto done = source->append(_parts, (cycle + i) * source->repeat(), source->repeat(), inner);
                    !done) {
                    return done;
                }
                for (std::size_t k = before; k < inner.size(); ++k) {
                    inner[k].stride = step(*source, level, cycle);
                }
            }
        }
        return append_loop(radix(level), std::move(inner), items);
    }

    result<void> append_loop(std::uint64_t count, std::vector<nest_item> inner, std::vector<nest_item>& items)
    {
        auto loop = normalise(_parts.loops(), count, std::move(inner));
        if (!loop) {
            return failed(std::move(loop.error()));
        }
        items.push_back({loop->source, loop->node, loop->offset, 0});
        return {};
    }

    assembly& _parts;
    std::span<const element_sequence* const> _sources;
    std::vector<nest_item>& _items;
    std::vector<std::uint64_t> _units;
    // The outermost level of the current piece, and its iterations.
    std::size_t _top     = 0;
    std::uint64_t _count = 0;
    std::size_t _pivot   = 0;
};

// Checks one source and adds its sequence, or none if the source has no bytes.
result<void> add_source(assembly& parts, const interleaved_part& part, std::vector<element_sequence>& sources)
{
    UCXL_TRY(check_part(part.source, part.offset, "part"));
    UCXL_TRY(check_dims(part.dims, "part"));
    if (part.repeat == 0) {
        return fail(errc::invalid_param, "repeat is 0");
    }
    auto at = parts.place(part.item, "item");
    if (!at) {
        return failed(std::move(at.error()));
    }
    if (std::ranges::any_of(part.dims, [](const dim& d) { return d.count == 0; })) {
        return {};
    }
    auto moved = travel_along(part.dims);
    if (!moved) {
        return at->is_empty() ? result<void>{} : failed(std::move(moved.error()));
    }
    UCXL_TRY(parts.use(part.item, part.source, part.offset, *moved));
    if (at->is_empty()) {
        return {};
    }
    std::uint64_t total = 1;
    for (const dim& along : part.dims) {
        if (!checked::mul(total, along.count, total) || total > limits::max_length) {
            return fail(errc::exceeds_limit,
                        std::format("elements of all dims exceed max_length ({})", limits::max_length));
        }
    }
    placed first{at->source + part.source, at->node, 0};
    if (!checked::add(at->offset, part.offset, first.offset)) {
        return fail(errc::exceeds_limit, std::format("offset exceeds max_offset ({})", limits::max_offset));
    }
    sources.emplace_back(first, std::min(part.repeat, total), part.dims);
    return {};
}

// A phase begins at every cycle in which a source becomes short or has run out.
std::vector<std::uint64_t> phase_borders(std::span<const element_sequence> sources)
{
    std::vector<std::uint64_t> borders{0};
    for (const element_sequence& source : sources) {
        borders.push_back(source.full_cycles());
        borders.push_back(source.cycles());
    }
    std::ranges::sort(borders);
    borders.erase(std::ranges::unique(borders).begin(), borders.end());
    return borders;
}

result<void> append_phase(assembly& parts, std::span<const element_sequence> sources, std::uint64_t begin,
                          std::uint64_t end, std::vector<nest_item>& items)
{
    std::vector<const element_sequence*> active;
    bool is_short = false;
    for (const element_sequence& source : sources) {
        if (begin < source.cycles()) {
            active.push_back(&source);
            is_short = is_short || begin >= source.full_cycles();
        }
    }
    if (!is_short) {
        return phase(parts, active, items).append(begin, end);
    }
    for (const element_sequence* source : active) {
        const std::uint64_t first = begin * source->repeat();
        const std::uint64_t count = std::min(source->repeat(), source->total() - first);
        UCXL_TRY(source->append(parts, first, count, items));
    }
    return {};
}

result<layout_ptr> interleaved(std::span<const interleaved_part> list)
{
    if (list.size() > limits::max_entries) {
        return fail(errc::exceeds_limit,
                    std::format("interleaved: {} parts exceed max_entries ({})", list.size(), limits::max_entries));
    }
    assembly parts;
    std::vector<element_sequence> sources;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (auto added = add_source(parts, list[i], sources); !added) {
            return fail(added.error().code, std::format("interleaved: parts[{}]: {}", i, added.error().message));
        }
    }
    const std::vector<std::uint64_t> borders = phase_borders(sources);
    std::vector<nest_item> items;
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
        if (auto done = append_phase(parts, sources, borders[i], borders[i + 1], items); !done) {
            return fail(done.error().code, std::format("interleaved: {}", done.error().message));
        }
    }
    auto root = UCXL_TRY(normalise(parts.loops(), 1, std::move(items)));
    return parts.finish(root);
}

} // namespace

result<layout_ptr> make_interleaved(std::span<const interleaved_part> parts)
{
    return guarded([&] { return interleaved(parts); });
}

} // namespace ucxl
