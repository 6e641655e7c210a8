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

} // namespace

std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t length)
{
    random from(seed);
    std::vector<std::byte> bytes(length);
    for (std::size_t i = 0; i < length; i += 8) {
        const std::uint64_t word = from.next();
        std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, length - i));
    }
    return bytes;
}

spec_memory::spec_memory(const spec& of, std::uint64_t seed, std::size_t misalign, std::pmr::memory_resource* resource)
    : _segments(segments_of(of)), _bases(num_sources_of(of))
{
    const auto bounds = bounds_of(of);
    for (std::uint32_t source = 0; source < _bases.size(); ++source) {
        buffer& memory     = _buffers.emplace_back(std::pmr::vector<std::byte>(resource));
        const auto found   = bounds.find(source);
        const auto used    = found == bounds.end() ? layout_bounds{} : found->second;
        const auto length  = static_cast<std::size_t>(used.true_ub - used.true_lb + 2 * margin) + misalign;
        const auto pattern = random_bytes(seed + source, length);
        memory.bytes.assign(pattern.begin(), pattern.end());
        memory.lb          = used.true_lb - margin - static_cast<std::int64_t>(misalign);
        const auto address = reinterpret_cast<std::uintptr_t>(memory.bytes.data());
        _bases[source]     = reinterpret_cast<std::byte*>(address - static_cast<std::uintptr_t>(memory.lb));
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
        std::memcpy(out.data() + packed, _buffers[source].bytes.data() + at, bytes);
    });
    return out;
}

void spec_memory::scatter(std::uint64_t offset, std::span<const std::byte> from)
{
    for_range(offset, from.size(), [&](std::uint32_t source, std::size_t at, std::size_t packed, std::size_t bytes) {
        std::memcpy(_buffers[source].bytes.data() + at, from.data() + packed, bytes);
    });
}

std::string spec_memory::first_difference(const spec_memory& other) const
{
    for (std::size_t source = 0; source < _buffers.size(); ++source) {
        const auto& mine = _buffers[source].bytes;
        const auto& its  = other._buffers[source].bytes;
        if (mine.size() != its.size()) {
            return std::format("source {}: buffers of {} and {} bytes", source, mine.size(), its.size());
        }
        const auto differs = std::ranges::mismatch(mine, its).in1;
        if (differs != mine.end()) {
            return std::format("source {}: bytes differ at offset {}", source,
                               differs - mine.begin() + _buffers[source].lb);
        }
    }
    return {};
}

} // namespace ucxl::test
