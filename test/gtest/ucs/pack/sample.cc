#include "sample.h"

#include <algorithm>
#include <stdexcept>

namespace ucxl::test
{

sample sample_of(const spec& described)
{
    auto what = build(described);
    if (!what) {
        throw std::runtime_error(what.error().message + ": " + to_string(described));
    }
    sample made{*what, {}};
    for (const segment& part : segments_of(described)) {
        for (std::uint64_t i = 0; i < part.length; ++i) {
            made.bytes.push_back({part.source, part.offset + static_cast<std::int64_t>(i)});
        }
    }
    return made;
}

spec_ptr draw_sample(random& from)
{
    random_options options;
    options.max_bytes   = pick(from, 1, 8192);
    options.max_blocks  = pick(from, 1, 1000);
    options.num_sources = from.one_in(3) ? 4 : 1;
    options.overlapping = from.one_in(4) ? overlapping::anyhow : overlapping::never;
    return random_spec(from, options);
}

std::vector<std::byte> random_bytes(random& from, std::size_t length)
{
    std::vector<std::byte> made(length);
    std::generate(made.begin(), made.end(), [&] { return static_cast<std::byte>(from.next()); });
    return made;
}

sample_memory::sample_memory(const sample& of, guard_side exact, random& from) : _low(of.what->num_sources(), INT64_MAX)
{
    std::vector<std::int64_t> high(_low.size(), INT64_MIN);
    for (const byte_place& byte : of.bytes) {
        _low[byte.source] = std::min(_low[byte.source], byte.offset);
        high[byte.source] = std::max(high[byte.source], byte.offset + 1);
    }
    for (std::size_t i = 0; i < _low.size(); ++i) {
        const bool used   = high[i] > _low[i];
        const auto length = used ? static_cast<std::size_t>(high[i] - _low[i]) : 0;
        _memory.push_back(std::make_unique<guarded_memory>(length, exact));
        std::ranges::copy(random_bytes(from, length), _memory.back()->data());
        _bases.push_back(_memory.back()->data() - (used ? _low[i] : 0));
    }
}

std::vector<std::vector<std::byte>> sample_memory::contents() const
{
    std::vector<std::vector<std::byte>> made;
    for (const auto& memory : _memory) {
        made.emplace_back(memory->bytes().begin(), memory->bytes().end());
    }
    return made;
}

std::vector<std::byte> sample_memory::read(const sample& of, std::uint64_t offset, std::uint64_t length) const
{
    std::vector<std::byte> made;
    for (std::uint64_t i = offset; i < offset + length; ++i) {
        made.push_back(_bases[of.bytes[i].source][of.bytes[i].offset]);
    }
    return made;
}

std::vector<std::vector<std::byte>> sample_memory::after_write(const sample& of, std::uint64_t offset,
                                                               const std::vector<std::byte>& data) const
{
    std::vector<std::vector<std::byte>> made = contents();
    for (std::size_t i = 0; i < data.size(); ++i) {
        const byte_place& byte                                                       = of.bytes[offset + i];
        made[byte.source][static_cast<std::size_t>(byte.offset - _low[byte.source])] = data[i];
    }
    return made;
}

} // namespace ucxl::test
