#include "region.h"

#include <array>

#include <unistd.h>

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
    const auto page  = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    const auto first = begin / page * page;
    const auto end   = (begin + bytes.size() + page - 1) / page * page;
    const std::span whole_pages(reinterpret_cast<std::byte*>(first), end - first);
    auto made = how == sharing::move ? ucx_layout::memory::move(bytes) : ucx_layout::memory::share(whole_pages);
    if (made) {
        _memory.emplace(std::move(*made));
    }
}

} // namespace ucxl::nixl
