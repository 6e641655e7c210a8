#include "remote_key.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace ucxl::two_process
{

namespace
{

void append_number(bytes& to, std::uint64_t number)
{
    const auto part = std::as_bytes(std::span(&number, 1));
    to.insert(to.end(), part.begin(), part.end());
}

std::uint64_t take_number(std::span<const std::byte>& from)
{
    std::uint64_t number = 0;
    check(from.size() >= sizeof(number), "a message with a key is too short");
    std::memcpy(&number, from.data(), sizeof(number));
    from = from.subspan(sizeof(number));
    return number;
}

// A packed key begins with a bit map of memory domains and a memory type. Then each domain's part follows, its length
// first.
std::size_t end_of_parts(std::span<const std::byte> key)
{
    std::uint64_t domains = 0;
    check(key.size() > sizeof(domains), "a packed key is too short");
    std::memcpy(&domains, key.data(), sizeof(domains));
    std::size_t end = sizeof(domains) + sizeof(std::uint8_t);
    for (int parts = std::popcount(domains); parts > 0; --parts) {
        check(end < key.size(), "a packed key has fewer parts than it announces");
        end += 1 + std::to_integer<std::size_t>(key[end]);
    }
    return end;
}

} // namespace

void restore_tail(std::span<std::byte> changed, std::span<const std::byte> original)
{
    const auto tail = original.subspan(end_of_parts(original));
    std::ranges::copy(tail, changed.subspan(end_of_parts(changed), tail.size()).begin());
}

void append_key(bytes& to, ucp_context_h context, ucp_mem_h memh, const void* address)
{
    const bytes key = pack_key(context, memh);
    append_number(to, reinterpret_cast<std::uint64_t>(address));
    append_number(to, key.size());
    to.insert(to.end(), key.begin(), key.end());
}

remote_key::remote_key(ucp_ep_h endpoint, std::span<const std::byte>& from) : _address(take_number(from))
{
    const auto length = take_number(from);
    check(from.size() >= length, "a message with a key is too short");
    _key = test::unpack_key(endpoint, from);
    from = from.subspan(length);
}

} // namespace ucxl::two_process
