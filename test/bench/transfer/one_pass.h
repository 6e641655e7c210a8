// The limits of one pass over the cache lines of a layout (footprint.h): alone, or as a message, for which the receiver
// copies when the sender says so by a flag, and then says that it has. For any side, over the memory that its own
// methods move: the receiver copies from memory of its own that is like the sender's.
#pragma once

#include "footprint.h"
#include "sides.h"

#include <cstdint>

namespace ucxl::bench
{

class one_pass
{
public:
    explicit one_pass(bool is_first) : _is_first(is_first) {}

    // Zeroed memory of both processes, which nobody else writes. What a pair may use of the memory of the limits:
    static constexpr std::size_t flags_length = 1024;
    void share(std::span<std::byte> flags);
    void prepare(const layout_case& moved, const side_memory& memory);

    void copy(const limit_way& way);
    void offer();
    void take(const limit_way& way);

private:
    struct flags;

    bool _is_first;
    flags *_out = nullptr, *_in = nullptr;
    line_plan _to_strided, _to_packed;
    side_memory _memory;
    std::uint64_t _offered = 0, _taken = 0;
};

} // namespace ucxl::bench
