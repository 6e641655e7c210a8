#include "record_parts.h"

#include <algorithm>

namespace ucxl
{

namespace
{

// The bytes that a record moves before it turns to its next part must fit the first-level cache.
constexpr std::uint64_t batch_bytes = 8192;
constexpr std::uint64_t max_batch   = 64;
// With one column, a batch is only one kernel call.
constexpr std::uint64_t max_single_batch = 1024;

bool may_meet(const record_part& one, const record_part& other, std::int64_t batch)
{
    if (one.source != other.source || batch == 1) {
        return false;
    }
    const auto meet = [&](std::int64_t low, std::int64_t high) {
        return low < static_cast<std::int64_t>(other.length) && -high < static_cast<std::int64_t>(one.length);
    };
    // The distance from `other` to `one`, in every iteration.
    const std::int64_t apart = one.offset - other.offset;
    if (one.stride == other.stride) {
        // The distances between all iterations are evenly spaced: if any is short enough, one beside 0 is.
        const std::int64_t last = batch - 1, at = one.stride == 0 ? 0 : std::clamp(-apart / one.stride, -last, last);
        for (std::int64_t i = std::max(at - 1, -last); i <= std::min(at + 1, last); ++i) {
            if (meet(apart + i * one.stride, apart + i * one.stride)) {
                return true;
            }
        }
        return false;
    }
    const std::int64_t one_end = (batch - 1) * one.stride, other_end = (batch - 1) * other.stride;
    return meet(apart + std::min<std::int64_t>(one_end, 0) - std::max<std::int64_t>(other_end, 0),
                apart + std::max<std::int64_t>(one_end, 0) - std::min<std::int64_t>(other_end, 0));
}

// Whether any two parts may overlap within `batch` iterations.
bool any_meet(std::span<const record_part> parts, std::int64_t batch)
{
    for (std::size_t i = 0; i < parts.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            if (may_meet(parts[i], parts[k], batch)) {
                return true;
            }
        }
    }
    return false;
}

} // namespace

std::uint32_t batch_of(std::span<const record_part> parts, std::uint64_t cycle_length, std::size_t columns)
{
    const std::uint64_t batch = std::clamp<std::uint64_t>(batch_bytes / cycle_length, 1, max_batch);
    if (columns == 1 && !any_meet(parts, max_single_batch)) {
        return max_single_batch;
    }
    return any_meet(parts, static_cast<std::int64_t>(batch)) ? 1 : static_cast<std::uint32_t>(batch);
}

std::optional<record_map> map_of(std::span<const record_part> parts)
{
    constexpr auto word    = static_cast<std::int64_t>(word_map::word);
    const record_part from = std::ranges::min(parts, {}, &record_part::offset);
    record_map map{.words = {}, .offset = from.offset, .stride = from.stride, .source = from.source};
    if (from.stride <= 0 || from.stride % word != 0) {
        return std::nullopt;
    }
    for (const record_part& part : parts) {
        const std::uint64_t words = part.length / word_map::word;
        const auto offset         = static_cast<std::uint64_t>(part.offset - from.offset);
        const std::uint64_t first = offset / word_map::word;
        if (part.source != from.source || part.stride != from.stride || offset % word_map::word != 0 ||
            part.length % word_map::word != 0 || words > word_map::max_words - map.words.words ||
            first > word_map::max_memory_words - words) {
            return std::nullopt;
        }
        for (std::uint64_t i = 0; i < words; ++i) {
            map.words.at[map.words.words++] = static_cast<std::uint8_t>(first + i);
        }
    }
    map.words.repeat(map.stride);
    return map;
}

} // namespace ucxl
