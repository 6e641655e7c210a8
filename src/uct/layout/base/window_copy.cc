#include "window_copy.h"

#include "ucs/layout/walk.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ucxl
{

std::optional<transfer_side> resolve(const reader_section&, const void* address, std::size_t length)
{
    const window_registry& registry = window_registry::instance();
    if (!registry.touches_arena(address, length)) {
        return transfer_side{nullptr, {}, 0, static_cast<std::byte*>(const_cast<void*>(address))};
    }
    const window* const found = registry.find(address, length);
    if (found == nullptr) {
        return std::nullopt;
    }
    const window_binding& binding = found->binding();
    return transfer_side{binding.plan.get(),
                         binding.bases,
                         static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - found->address()),
                         nullptr,
                         &found->traffic(),
                         binding.indirect,
                         binding.has_indirect_bases};
}

namespace
{

constexpr std::size_t bounce_length = 4096;

// The memory of a network card that holds the range, or null.
const indirect_memory* card_memory_at(const void* address, std::uint64_t length)
{
    const window* const found = window_registry::instance().find(address, length);
    return found == nullptr ? nullptr : found->binding().indirect;
}

// Calls part(address, offset from `at`, length) for each block of the side. Windows over windows that are no memory of
// a card are not followed.
template <typename Part>
bool for_each_part(const transfer_side& side, std::uint64_t at, std::uint64_t length, Part&& part)
{
    std::uint64_t done = 0;
    bool is_good       = true;
    for_each_block(*side.plan->source_layout(), side.offset + at, length, [&](const placed_block& block) {
        is_good = part(side.bases[block.source] + block.offset, done, block.length);
        done += block.length;
        return is_good;
    });
    return is_good;
}

bool move_indirect(const transfer_side& to, const transfer_side& from, std::size_t length)
{
    alignas(64) std::array<std::byte, bounce_length> bounce;
    for (std::uint64_t at = 0; at < length;) {
        const std::uint64_t size = std::min<std::uint64_t>(length - at, bounce.size());
        if (!read_side(from, at, size, bounce.data()) || !write_side(to, at, size, bounce.data())) {
            return false;
        }
        at += size;
    }
    return true;
}

} // namespace

bool read_side(const transfer_side& from, std::uint64_t at, std::uint64_t length, void* target)
{
    auto* const bytes = static_cast<std::byte*>(target);
    if (from.plan == nullptr) {
        std::memcpy(bytes, from.memory + at, length);
        return true;
    }
    if (!from.is_indirect()) {
        from.plan->gather(from.bases, from.offset + at, length, bytes);
        return true;
    }
    return for_each_part(from, at, length, [&](const std::byte* address, std::uint64_t done, std::uint64_t size) {
        if (!window_registry::instance().touches_arena(address, size)) {
            std::memcpy(bytes + done, address, size);
            return true;
        }
        const indirect_memory* const card = card_memory_at(address, size);
        return card != nullptr && card->read(address, size, bytes + done);
    });
}

bool write_side(const transfer_side& to, std::uint64_t at, std::uint64_t length, const void* source)
{
    const auto* const bytes = static_cast<const std::byte*>(source);
    if (to.plan == nullptr) {
        std::memcpy(to.memory + at, bytes, length);
        return true;
    }
    if (!to.is_indirect()) {
        to.plan->scatter(to.bases, to.offset + at, length, bytes);
        return true;
    }
    return for_each_part(to, at, length, [&](std::byte* address, std::uint64_t done, std::uint64_t size) {
        if (!window_registry::instance().touches_arena(address, size)) {
            std::memcpy(address, bytes + done, size);
            return true;
        }
        const indirect_memory* const card = card_memory_at(address, size);
        return card != nullptr && card->write(address, size, bytes + done);
    });
}

bool move_bytes(const transfer_side& to, const transfer_side& from, std::size_t length, std::size_t whole)
{
    if (to.is_indirect() || from.is_indirect()) [[unlikely]] {
        return move_indirect(to, from, length);
    }
    if (to.plan == nullptr && from.plan == nullptr) {
        std::memcpy(to.memory, from.memory, length);
    } else if (to.plan == nullptr) {
        from.plan->gather(from.bases, from.offset, length, to.memory, whole);
    } else if (from.plan == nullptr) {
        to.plan->scatter(to.bases, to.offset, length, from.memory, whole);
    } else {
        pack_plan::copy(*to.plan, to.bases, to.offset, *from.plan, from.bases, from.offset, length, whole);
    }
    return true;
}

namespace
{

bool move_counted(const transfer_side& to, const transfer_side& from, std::size_t length)
{
    if (!move_bytes(to, from, length)) {
        return false;
    }
    if (to.traffic != nullptr) {
        to.traffic->count_write(length);
    }
    if (from.traffic != nullptr) {
        from.traffic->count_read(length);
    }
    return true;
}

std::optional<refused_range> copied(bool is_done, const void* address, std::size_t length)
{
    return is_done ? std::nullopt : std::optional(refused_range{address, length, imported_memory_failed});
}

} // namespace

const foreign_memory* foreign_at(const void* address, std::size_t length)
{
    const window_registry& registry   = window_registry::instance();
    const foreign_memory* const other = registry.foreign();
    return other != nullptr && other->touches(address, length) && !registry.holds_windows(address, length) ? other
                                                                                                           : nullptr;
}

bool is_plain(const void* address, std::size_t length)
{
    return !window_registry::instance().touches_arena(address, length) && foreign_at(address, length) == nullptr;
}

std::optional<refused_range> move_range(void* target, const void* source, std::size_t length)
{
    if (length == 0) {
        return std::nullopt;
    }
    if (const auto* const other = foreign_at(target, length)) {
        return copied(other->write(target, length, source), target, length);
    }
    if (const auto* const other = foreign_at(source, length)) {
        return copied(other->read(source, length, target), source, length);
    }
    const reader_section section;
    const auto to   = resolve(section, target, length);
    const auto from = resolve(section, source, length);
    if (!to || !from) {
        return refused_range{to ? source : target, length, not_in_a_window};
    }
    if (!move_counted(*to, *from, length)) {
        return refused_range{to->is_indirect() ? target : source, length, card_memory_failed};
    }
    return std::nullopt;
}

std::optional<refused_range> move_window(void* target, const void* source, std::size_t length, const void* remote)
{
    if (length > 0 && is_plain(target, length) && is_plain(source, length)) {
        return refused_range{remote, length, not_in_a_window};
    }
    return move_range(target, source, length);
}

namespace
{

// Calls move(window, row, offset) if the range is part of a live window that is a row of blocks, `plain` is plain
// memory, and `can_move` of the row is true.
template <typename Move>
[[gnu::always_inline]] inline bool with_row(const void* window_address, const void* plain, std::size_t length,
                                            bool (block_row::*can_move)(std::uint64_t) const, Move move)
{
    const window_registry& registry = window_registry::instance();
    if (length == 0 || registry.touches_arena(plain, length)) [[unlikely]] {
        return false;
    }
    const reader_section section;
    const window* const found = registry.find(window_address, length);
    if (found == nullptr) [[unlikely]] {
        return false;
    }
    const block_row& row = found->binding().row;
    if (!(row.*can_move)(length)) {
        return false;
    }
    move(*found, row, static_cast<std::uint64_t>(static_cast<const std::byte*>(window_address) - found->address()));
    return true;
}

} // namespace

bool write_row(void* window_address, const void* source, std::size_t length) noexcept
{
    return with_row(window_address, source, length, &block_row::can_scatter,
                    [&](const window& to, const block_row& row, std::uint64_t offset) {
                        row.scatter(offset, length, source);
                        to.traffic().count_write(length);
                    });
}

bool read_row(void* target, const void* window_address, std::size_t length) noexcept
{
    return with_row(window_address, target, length, &block_row::can_gather,
                    [&](const window& from, const block_row& row, std::uint64_t offset) {
                        row.gather(offset, length, target);
                        from.traffic().count_read(length);
                    });
}

} // namespace ucxl
