#include "watched_memory.h"

#include <algorithm>
#include <cstring>

#include "key_maker.h"

namespace ucxl::softhca::test
{

std::uint8_t decisions::byte()
{
    if (_bytes.empty()) {
        return 0;
    }
    const std::uint8_t value = _bytes.front();
    _bytes                   = _bytes.subspan(1);
    return value;
}

std::uint32_t decisions::word()
{
    return byte() | std::uint32_t{byte()} << 8;
}

void decisions::fill(std::span<std::byte> with)
{
    std::ranges::generate(with, [&] { return std::byte{byte()}; });
}

watched_memory::watched_memory() : _bytes(3 * bytes_each)
{
}

std::span<std::byte> watched_memory::take(client_id client, std::size_t bytes, bool written)
{
    constexpr std::size_t gap = 64;
    const std::span all       = std::span(_bytes).subspan(client * bytes_each, bytes_each);
    const auto first          = reinterpret_cast<std::uintptr_t>(all.data());
    const std::size_t begin   = (first + _used[client] + gap + 63) / 64 * 64 - first;
    const auto made           = all.subspan(begin, bytes);
    _used[client]             = begin + bytes;
    _ranges.push_back({client, address_of(made), bytes, written});
    return made;
}

watched_memory::verdict watched_memory::judge(const piece& asked, bool writes)
{
    if (asked.space != space::process) {
        return verdict::fine;
    }
    if (asked.client == 0 || asked.client >= dead.size() || dead[asked.client]) {
        return verdict::gone;
    }
    const auto inside = [&](std::uint64_t first, std::uint64_t length) {
        return asked.address >= first && asked.address - first <= length &&
               asked.length <= length - (asked.address - first);
    };
    const auto all = address_of(_bytes) + asked.client * bytes_each;
    if (!inside(all, bytes_each)) {
        return verdict::fault;
    }
    const auto fits = [&](const range& one) {
        return one.client == asked.client && inside(one.first, one.length) && (one.written || !writes);
    };
    if (std::ranges::none_of(_ranges, fits)) {
        violation = (writes ? "written at " : "read at ") + std::to_string(asked.address - all) + ", " +
                    std::to_string(asked.length) + " bytes of process " + std::to_string(asked.client);
    }
    return verdict::fine;
}

move_status watched_memory::move(std::span<const piece> to, std::span<const piece> from)
{
    std::uint64_t to_done   = 0;
    std::uint64_t from_done = 0;
    while (!to.empty() && !from.empty()) {
        const std::uint64_t length = std::min(to.front().length - to_done, from.front().length - from_done);
        const piece target{to.front().space, to.front().client, to.front().address + to_done, length};
        const piece source{from.front().space, from.front().client, from.front().address + from_done, length};
        if (const auto found = judge(target, true); found != verdict::fine) {
            return found == verdict::gone ? move_status::gone_to : move_status::fault_to;
        }
        if (const auto found = judge(source, false); found != verdict::fine) {
            return found == verdict::gone ? move_status::gone_from : move_status::fault_from;
        }
        std::memmove(reinterpret_cast<void*>(target.address), reinterpret_cast<const void*>(source.address), length);
        to_done += length;
        from_done += length;
        if (to_done == to.front().length) {
            to      = to.subspan(1);
            to_done = 0;
        }
        if (from_done == from.front().length) {
            from      = from.subspan(1);
            from_done = 0;
        }
    }
    if (!to.empty() || !from.empty()) {
        violation = "a move between lists of different length";
    }
    return move_status::ok;
}

} // namespace ucxl::softhca::test
