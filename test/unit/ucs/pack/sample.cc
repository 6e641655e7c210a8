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
            sample.bytes.push_back({part.source, part.offset + static_cast<std::int64_t>(i)});
        }
    }
    return sample;
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
    std::vector<std::byte> list(length);
    std::generate(list.begin(), list.end(), [&] { return static_cast<std::byte>(from.next()); });
    return list;
}

sample_memory::sample_memory(const sample& sample, guard_side exact, random& from)
    : _low(sample.layout->num_sources(), INT64_MAX)
{
    std::vector<std::int64_t> high(_low.size(), INT64_MIN);
    for (const byte_place& byte : sample.bytes) {
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
    std::vector<std::vector<std::byte>> list;
    for (const auto& memory : _memory) {
        list.emplace_back(memory->bytes().begin(), memory->bytes().end());
    }
    return list;
}

std::vector<std::byte> sample_memory::read(const sample& sample, std::uint64_t offset, std::uint64_t length) const
{
    std::vector<std::byte> list;
    for (std::uint64_t i = offset; i < offset + length; ++i) {
        list.push_back(_bases[sample.bytes[i].source][sample.bytes[i].offset]);
    }
    return list;
}

std::vector<std::vector<std::byte>> sample_memory::after_write(const sample& sample, std::uint64_t offset,
                                                               const std::vector<std::byte>& data) const
{
    std::vector<std::vector<std::byte>> list = contents();
    for (std::size_t i = 0; i < data.size(); ++i) {
        const byte_place& byte                                                       = sample.bytes[offset + i];
        list[byte.source][static_cast<std::size_t>(byte.offset - _low[byte.source])] = data[i];
    }
    return list;
}

} // namespace ucxl::test
