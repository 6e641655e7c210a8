// Any bytes as a remote key of lay_shm or lay_cma and the record behind it: refused, or a layout every byte of which
// lies inside the memory. Once as they are, and twice with those fields made right that random bytes never hit.
#include "fuzz_target.h"

#include "ucs/layout/walk.h"
#include "ucs/layout/wire.h"
#include "uct/layout/peer/key.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace ucxl;
using fuzz::require;

namespace
{

void check_inside(const shm_record& record, shm_access access)
{
    const std::int64_t addresses = std::int64_t{1} << 57;
    std::uint64_t blocks         = 0;
    for_each_block(*record.layout, 0, record.layout->packed_length(), [&](const placed_block& block) {
        const shm_place& place   = record.places[block.source];
        const auto end           = access == shm_access::mapping ? static_cast<std::int64_t>(place.length) : addresses;
        const std::int64_t first = place.base + block.offset;
        require(first >= 0 && first + static_cast<std::int64_t>(block.length) <= end, "a block outside the memory");
        return ++blocks < 4096;
    });
}

void check_record(std::span<const std::byte> bytes, const shm_key& key)
{
    if (const auto right = check_key(key); !right) {
        require(!right.error().message.empty(), "an error says why");
        return;
    }
    const auto record = unpack_record(bytes, key);
    if (!record) {
        require(!record.error().message.empty(), "an error says why");
        return;
    }
    require(record->layout->packed_length() == key.length, "the length is that of the key");
    require(record->places.size() == record->layout->num_sources(), "a place for every source");
    check_inside(*record, key.access);
    std::vector<std::byte> again(record_length(*record->layout));
    require(pack_record(record->header, record->places, *record->layout, again).has_value() &&
                std::ranges::equal(again, bytes),
            "accepted bytes are the record");
}

shm_key made_right(shm_key key, shm_access access, std::span<const std::byte> record)
{
    key.magic         = shm_key::form;
    key.access        = access;
    key.record_length = static_cast<std::uint32_t>(record.size());
    key.record_offset &= 4088;
    key.records_fd &= 0x7fffffff;
    if (record.size() >= sizeof(key.generation)) {
        std::memcpy(&key.generation, record.data(), sizeof(key.generation));
    }
    shm_record_header header;
    if (record.size() < sizeof(header)) {
        return key;
    }
    std::memcpy(&header, record.data(), sizeof(header));
    if (header.num_sources <= limits::max_sources && record_places_end(header.num_sources) <= record.size()) {
        const auto layout = unpack_wire(record.subspan(record_places_end(header.num_sources)));
        key.length        = layout ? (*layout)->packed_length() : key.length;
        key.address       = std::min(key.address, UINT64_MAX - key.length);
    }
    return key;
}

} // namespace

UCXL_FUZZ_TARGET(shm_key)
{
    const auto bytes = std::as_bytes(std::span(data, size));
    shm_key key{};
    const std::size_t length = std::min(sizeof(key), size);
    std::memcpy(&key, bytes.data(), length);
    const auto record = bytes.subspan(length);
    check_record(record, key);
    check_record(record, made_right(key, shm_access::mapping, record));
    std::vector<std::byte> of_process(record.begin(), record.end());
    // Places that name no file, as far as there are any.
    for (std::size_t at = sizeof(shm_record_header); at + sizeof(shm_place) <= of_process.size() && at < 1024;
         at += sizeof(shm_place)) {
        std::fill_n(of_process.begin() + static_cast<std::ptrdiff_t>(at + sizeof(std::int64_t)),
                    sizeof(shm_place) - sizeof(std::int64_t), std::byte{});
    }
    check_record(of_process, made_right(key, shm_access::process, of_process));
    return 0;
}
