#include "window_copy.h"

#include <cstring>

namespace ucxl
{

namespace
{

std::optional<transfer_side> window_side(const reader_section&, const void* address, std::size_t length)
{
    const window* const found = window_registry::instance().find(address, length);
    if (found == nullptr) {
        return std::nullopt;
    }
    const window_binding& binding = found->binding();
    return transfer_side{binding.plan.get(), binding.bases,
                         static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - found->address()), nullptr,
                         &found->traffic()};
}

} // namespace

std::optional<transfer_side> local_side(const reader_section& section, const void* address, std::size_t length)
{
    if (window_registry::instance().touches_arena(address, length)) {
        return window_side(section, address, length);
    }
    return transfer_side{nullptr, {}, 0, static_cast<std::byte*>(const_cast<void*>(address))};
}

void move_bytes(const transfer_side& to, const transfer_side& from, std::size_t length)
{
    if (to.plan == nullptr && from.plan == nullptr) {
        std::memcpy(to.memory, from.memory, length);
    } else if (to.plan == nullptr) {
        from.plan->gather(from.bases, from.offset, length, to.memory);
    } else if (from.plan == nullptr) {
        to.plan->scatter(to.bases, to.offset, length, from.memory);
    } else {
        pack_plan::copy(*to.plan, to.bases, to.offset, *from.plan, from.bases, from.offset, length);
    }
}

namespace
{

void move_counted(const transfer_side& to, const transfer_side& from, std::size_t length)
{
    move_bytes(to, from, length);
    if (to.traffic != nullptr) {
        to.traffic->count_write(length);
    }
    if (from.traffic != nullptr) {
        from.traffic->count_read(length);
    }
}

} // namespace

std::optional<refused_range> write_window(void* window_address, const void* source, std::size_t length)
{
    if (length == 0) {
        return std::nullopt;
    }
    const reader_section section;
    const auto to   = window_side(section, window_address, length);
    const auto from = local_side(section, source, length);
    if (!to || !from) {
        return refused_range{to ? source : window_address, length, not_in_a_window};
    }
    move_counted(*to, *from, length);
    return std::nullopt;
}

std::optional<refused_range> read_window(void* target, const void* window_address, std::size_t length)
{
    if (length == 0) {
        return std::nullopt;
    }
    const reader_section section;
    const auto from = window_side(section, window_address, length);
    const auto to   = local_side(section, target, length);
    if (!to || !from) {
        return refused_range{from ? target : window_address, length, not_in_a_window};
    }
    move_counted(*to, *from, length);
    return std::nullopt;
}

std::optional<refused_range> copy_in_process(void* target, const void* source, std::size_t length)
{
    const auto& registry = window_registry::instance();
    if (registry.touches_arena(target, length)) {
        return write_window(target, source, length);
    }
    if (registry.touches_arena(source, length)) {
        return read_window(target, source, length);
    }
    if (length > 0) {
        std::memcpy(target, source, length);
    }
    return std::nullopt;
}

} // namespace ucxl
