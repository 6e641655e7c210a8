// One source of an interleaved layout as a sequence: datum j is at offset(j), `repeat` datums make a cycle.
#pragma once

#include "assembly.h"

namespace ucxl
{

class datum_sequence
{
public:
    // dims without counts of 0, of at most max_length datums together.
    datum_sequence(const placed& item, std::uint64_t repeat, std::span<const dim> dims);

    std::uint64_t total() const { return _spans.front(); }
    std::uint64_t repeat() const { return _repeat; }
    std::uint64_t full_cycles() const { return total() / _repeat; }
    std::uint64_t cycles() const { return full_cycles() + (total() % _repeat != 0 ? 1 : 0); }

    // Offset of datum j < total() from that of datum 0.
    std::int64_t offset(std::uint64_t datum) const;
    // Appends datums [first, first + count) as at most 2 * dims loops.
    result<void> append(assembly& parts, std::uint64_t first, std::uint64_t count, std::vector<nest_item>& items) const;
    // Cycle counts after which an inner dimension wraps. False if one does so inside a cycle, differently from cycle to
    // cycle.
    bool add_breaks(std::vector<std::uint64_t>& breaks) const;

private:
    result<void> append_level(assembly& parts, std::size_t level, std::uint64_t first, std::uint64_t count,
                              std::int64_t offset, std::vector<nest_item>& items) const;

    placed _item;
    std::uint64_t _repeat;
    std::vector<dim> _dims;
    std::vector<std::uint64_t> _spans; // _spans[k]: datums of dims k and inner ones together; the last is 1
};

} // namespace ucxl
