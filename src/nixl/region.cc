#include "region.h"

#include "sys/pages.h"

#include <array>

namespace ucxl::nixl
{

region::region(std::uint64_t id, void* address, std::size_t length, sharing how)
    : _info{.id = id, .address = reinterpret_cast<std::uint64_t>(address), .length = length}
{
    if (how == sharing::never || length == 0) {
        _reason = "not asked for";
        return;
    }
    std::array<char, 512> text{};
    ucp_layout_capture_errors(text.data(), text.size());
    share({static_cast<std::byte*>(address), length}, sharing::mapped);
    if (!_memory && how == sharing::move) {
        ucp_layout_capture_errors(text.data(), text.size());
        share({static_cast<std::byte*>(address), length}, sharing::move);
    }
    ucp_layout_capture_errors(nullptr, 0);
    _reason = _memory ? "" : text.data();
}

// Mappings consist of whole pages, so the rest of the first and the last page is in the same one.
void region::share(std::span<std::byte> bytes, sharing how)
{
    const std::size_t before = reinterpret_cast<std::uintptr_t>(bytes.data()) % page_length();
    const std::span whole_pages(bytes.data() - before, round_to_pages(before + bytes.size()));
    auto made = how == sharing::move ? ucx_layout::memory::move(bytes) : ucx_layout::memory::share(whole_pages);
    if (made) {
        _memory.emplace(std::move(*made));
    }
}

} // namespace ucxl::nixl
