#include "footprint.h"

#include "bench/common/streaming.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace ucxl::bench
{

namespace
{

void append(std::vector<line_run>& runs, line_run more)
{
    if (!runs.empty() && runs.back().first + runs.back().count == more.first && runs.back().whole == more.whole) {
        runs.back().count += more.count;
    } else {
        runs.push_back(more);
    }
}

// A library's memcpy is the fastest for long runs and costs a call for short ones.
constexpr std::size_t short_run = 8;

[[gnu::always_inline]] inline void copy_short(std::byte* to, const std::byte* from, std::size_t lines)
{
    for (std::size_t i = 0; i < lines; ++i) {
        std::memcpy(to + i * line_length, from + i * line_length, line_length);
    }
}

void copy_lines(std::byte* to, const std::byte* from, std::size_t lines, bool whole, copy_kind kind)
{
    if (whole && kind == copy_kind::streaming) {
        stream(to, from, lines * line_length);
    } else if (whole && lines > short_run) {
        std::memcpy(to, from, lines * line_length); // it may go past the caches by itself, too
    } else {
        copy_short(to, from, lines);
    }
}

void load_lines(const std::byte* from, std::size_t lines)
{
    for (std::size_t i = 0; i < lines; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + i * line_length, sizeof(word));
        __asm__ volatile("" : : "r"(word)); // nobody needs it
    }
}

void store_lines(std::byte* to, std::size_t lines)
{
    for (std::size_t i = 0; i < lines; ++i) {
        const std::uint64_t word = i;
        std::memcpy(to + i * line_length, &word, sizeof(word));
    }
    __asm__ volatile("" : : "r"(to) : "memory");
}

// A place in runs.
class cursor
{
public:
    explicit cursor(std::span<const line_run> runs) : _runs(runs) {}

    bool at_end() const { return _next == _runs.size(); }
    std::size_t line() const { return _runs[_next].first + _done; }
    std::size_t left() const { return _runs[_next].count - _done; }
    bool whole() const { return _runs[_next].whole; }

    void advance(std::size_t lines)
    {
        _done += lines;
        if (_done == _runs[_next].count) {
            ++_next;
            _done = 0;
        }
    }

private:
    std::span<const line_run> _runs;
    std::size_t _next = 0, _done = 0;
};

constexpr auto signed_length = static_cast<std::ptrdiff_t>(line_length);

std::ptrdiff_t signed_line(const cursor& at)
{
    return static_cast<std::ptrdiff_t>(at.line());
}

} // namespace

footprint::footprint(const type_tree& type, std::size_t extent, std::size_t shift)
{
    const std::size_t num = (shift + extent + line_length - 1) / line_length;
    std::vector<std::size_t> order;
    std::vector<std::uint8_t> covered(num); // bytes
    walk(type, 0, [&](std::int64_t offset, std::size_t length) {
        if (offset < 0 || static_cast<std::size_t>(offset) > extent ||
            length > extent - static_cast<std::size_t>(offset)) {
            throw std::out_of_range("a layout that reaches beyond its memory");
        }
        const std::size_t begin = shift + static_cast<std::size_t>(offset), end = begin + length;
        for (std::size_t at = begin; at < end;) {
            const std::size_t line = at / line_length, next = std::min(end, (line + 1) * line_length);
            if (covered[line] == 0) {
                order.push_back(line);
            }
            covered[line] = static_cast<std::uint8_t>(std::min(line_length, covered[line] + next - at));
            at            = next;
        }
    });
    for (const std::size_t line : order) {
        append(_runs, {line, 1, covered[line] == line_length});
    }
}

footprint::footprint(std::size_t length, std::size_t shift)
{
    const std::size_t begin = shift / line_length, end = (shift + length + line_length - 1) / line_length;
    for (std::size_t line = begin; length > 0 && line < end; ++line) {
        append(_runs, {line, 1, line * line_length >= shift && (line + 1) * line_length <= shift + length});
    }
}

std::size_t footprint::num_lines() const
{
    std::size_t sum = 0;
    for (const line_run& run : _runs) {
        sum += run.count;
    }
    return sum;
}

std::vector<std::vector<line_run>> footprint::divide(std::size_t parts) const
{
    const std::size_t total = num_lines();
    std::vector<std::vector<line_run>> made(parts);
    cursor next(_runs);
    std::size_t done = 0;
    for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t end = total / parts * (part + 1) + total % parts * (part + 1) / parts;
        while (done < end) {
            const std::size_t lines = std::min(end - done, next.left());
            made[part].push_back({next.line(), lines, next.whole()});
            next.advance(lines);
            done += lines;
        }
    }
    return made;
}

line_plan::line_plan(std::span<const line_run> to, std::span<const line_run> from)
{
    cursor target(to), source(from);
    while (!target.at_end() && !source.at_end()) {
        const std::size_t lines = std::min(target.left(), source.left());
        append(_copies, {signed_line(target), signed_line(source), lines, 1, 0, 0, target.whole()});
        target.advance(lines);
        source.advance(lines);
    }
    while (!source.at_end()) {
        const std::size_t lines = source.left();
        append(_loads, {0, signed_line(source), lines, 1, 0, 0, false});
        source.advance(lines);
    }
    while (!target.at_end()) {
        const std::size_t lines = target.left();
        append(_stores, {signed_line(target), 0, lines, 1, 0, 0, false});
        target.advance(lines);
    }
}

void line_plan::append(std::vector<step>& steps, const step& more)
{
    if (!steps.empty() && steps.back().lines == more.lines && steps.back().whole == more.whole) {
        step& last                     = steps.back();
        const std::ptrdiff_t to_stride = more.to - last.to, from_stride = more.from - last.from;
        if (last.times == 1) {
            last.to_stride   = to_stride;
            last.from_stride = from_stride;
            last.times       = 2;
            return;
        }
        if (to_stride == last.times * last.to_stride && from_stride == last.times * last.from_stride) {
            ++last.times;
            return;
        }
    }
    steps.push_back(more);
}

void line_plan::copy(const step& one, std::byte* to_line, const std::byte* from_line, copy_kind kind)
{
    if (one.lines == 1 && (!one.whole || kind == copy_kind::plain)) {
        for (std::ptrdiff_t i = 0; i < one.times; ++i) {
            copy_short(to_line + (one.to + i * one.to_stride) * signed_length,
                       from_line + (one.from + i * one.from_stride) * signed_length, 1);
        }
        return;
    }
    for (std::ptrdiff_t i = 0; i < one.times; ++i) {
        copy_lines(to_line + (one.to + i * one.to_stride) * signed_length,
                   from_line + (one.from + i * one.from_stride) * signed_length, one.lines, one.whole, kind);
    }
}

void line_plan::run(std::byte* to_line, const std::byte* from_line, copy_kind kind) const
{
    for (const step& one : _copies) {
        copy(one, to_line, from_line, kind);
    }
    for (const step& one : _loads) {
        for (std::ptrdiff_t i = 0; i < one.times; ++i) {
            load_lines(from_line + (one.from + i * one.from_stride) * signed_length, one.lines);
        }
    }
    for (const step& one : _stores) {
        for (std::ptrdiff_t i = 0; i < one.times; ++i) {
            store_lines(to_line + (one.to + i * one.to_stride) * signed_length, one.lines);
        }
    }
    if (kind == copy_kind::streaming) {
        stream_fence();
    }
}

} // namespace ucxl::bench
