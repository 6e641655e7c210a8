#include "spec_memory.h"

#include "random.h"

#include <algorithm>
#include <cstring>
#include <format>

namespace ucxl::test
{

namespace
{

constexpr std::int64_t margin = 64;

void fill_randomly(std::byte* bytes, std::size_t length, std::uint64_t seed)
{
    random from(seed);
    std::uint64_t word = from.next();
    for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word), word = from.next()) {
        std::memcpy(bytes, &word, sizeof(word));
    }
    if (length != 0) { // else there may be no bytes at all
        std::memcpy(bytes, &word, length);
    }
}

} // namespace

std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t length)
{
    std::vector<std::byte> bytes(length);
    fill_randomly(bytes.data(), length, seed);
    return bytes;
}

spec_memory::spec_memory(const spec& of, std::uint64_t seed, std::size_t misalign, std::pmr::memory_resource* resource)
    : _segments(segments_of(of)), _bases(num_sources_of(of))
{
    const auto bounds = bounds_of(of);
    for (std::uint32_t source = 0; source < _bases.size(); ++source) {
        const auto found  = bounds.find(source);
        const auto used   = found == bounds.end() ? layout_bounds{} : found->second;
        const auto length = static_cast<std::size_t>(used.true_ub - used.true_lb + 2 * margin) + misalign;
        const auto first  = static_cast<std::byte*>(resource->allocate(length, 1));
        const auto lb     = used.true_lb - margin - static_cast<std::int64_t>(misalign);
        _buffers.push_back({.memory = {first, {.resource = resource, .length = length}}, .lb = lb});
        fill_randomly(first, length, seed + source);
        const auto address = reinterpret_cast<std::uintptr_t>(first);
        _bases[source]     = reinterpret_cast<std::byte*>(address - static_cast<std::uintptr_t>(lb));
    }
    for (const segment& next : _segments) {
        _packed_length += next.length;
    }
}

template <typename Fn>
void spec_memory::for_range(std::uint64_t offset, std::uint64_t length, Fn&& fn) const
{
    std::uint64_t packed = 0;
    for (const segment& next : _segments) {
        const std::uint64_t begin = std::max(offset, packed);
        const std::uint64_t end   = std::min(offset + length, packed + next.length);
        if (begin < end) {
            const buffer& memory = _buffers[next.source];
            const auto at        = static_cast<std::size_t>(next.offset - memory.lb) + (begin - packed);
            fn(next.source, at, static_cast<std::size_t>(begin - offset), static_cast<std::size_t>(end - begin));
        }
        packed += next.length;
    }
}

std::vector<std::byte> spec_memory::gather(std::uint64_t offset, std::uint64_t length) const
{
    std::vector<std::byte> out(length);
    for_range(offset, length, [&](std::uint32_t source, std::size_t at, std::size_t packed, std::size_t bytes) {
        std::memcpy(out.data() + packed, _buffers[source].memory.get() + at, bytes);
    });
    return out;
}

void spec_memory::scatter(std::uint64_t offset, std::span<const std::byte> from)
{
    for_range(offset, from.size(), [&](std::uint32_t source, std::size_t at, std::size_t packed, std::size_t bytes) {
        std::memcpy(_buffers[source].memory.get() + at, from.data() + packed, bytes);
    });
}

std::string spec_memory::first_difference(const spec_memory& other) const
{
    for (std::size_t source = 0; source < _buffers.size(); ++source) {
        const auto mine = _buffers[source].bytes();
        const auto its  = other._buffers[source].bytes();
        if (mine.size() != its.size()) {
            return std::format("source {}: buffers of {} and {} bytes", source, mine.size(), its.size());
        }
        if (std::memcmp(mine.data(), its.data(), mine.size()) != 0) {
            const auto differs = std::ranges::mismatch(mine, its).in1;
            return std::format("source {}: bytes differ at offset {}", source,
                               differs - mine.begin() + _buffers[source].lb);
        }
    }
    return {};
}

} // namespace ucxl::test
