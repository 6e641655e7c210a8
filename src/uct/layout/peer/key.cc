#include "key.h"

#include "sys/pages.h"
#include "ucs/layout/wire.h"

#include <algorithm>
#include <cstring>
#include <format>

namespace ucxl
{

namespace
{

// On every 64-bit machine the addresses of processes end below this.
constexpr std::uint64_t end_of_addresses = std::uint64_t{1} << 57;

std::size_t places_length(std::uint32_t num_sources)
{
    return num_sources * sizeof(shm_place);
}

// Whether [lb, ub) from the base is inside the memory. All values are below 2^48, except the base of a hostile record.
bool is_inside(std::int64_t base, const layout_bounds& bounds, std::uint64_t memory_length)
{
    std::int64_t first, end;
    if (__builtin_add_overflow(base, bounds.true_lb, &first) || __builtin_add_overflow(base, bounds.true_ub, &end)) {
        return false;
    }
    return first >= 0 && end >= first && static_cast<std::uint64_t>(end) <= memory_length;
}

// Of a place that peers map.
bool is_region(const shm_place& place)
{
    return place.fd >= 0 && place.length > 0 && place.length <= 2 * limits::max_length &&
           place.file_offset <= 2 * limits::max_length && place.file_offset % page_length() == 0;
}

bool is_empty(const shm_place& place)
{
    return place.inode == 0 && place.file_offset == 0 && place.length == 0 && place.fd == 0 && place.device == 0;
}

} // namespace

result<void> check_places(const layout& layout, std::span<const shm_place> places, shm_access access)
{
    for (std::uint32_t source = 0; source < places.size(); ++source) {
        const layout_bounds& bounds = layout.bounds(source);
        const shm_place& place      = places[source];
        const bool has_bytes        = bounds.true_ub > bounds.true_lb;
        const bool is_mapped        = access == shm_access::mapping;
        if (is_mapped && has_bytes ? !is_region(place) : !is_empty(place)) {
            return fail(errc::malformed, std::format("the region of source {} is out of range", source));
        }
        if (has_bytes && !is_inside(place.base, bounds, is_mapped ? place.length : end_of_addresses)) {
            return fail(errc::malformed, std::format("source {} is not inside its memory", source));
        }
    }
    return {};
}

std::size_t record_length(const layout& layout)
{
    return record_places_end(layout.num_sources()) + wire_length(layout);
}

result<void> pack_record(const shm_record_header& header, std::span<const shm_place> places, const layout& layout,
                         std::span<std::byte> into)
{
    std::memcpy(into.data(), &header, sizeof(header));
    into = into.subspan(sizeof(header));
    std::ranges::copy(std::as_bytes(places), into.begin());
    return pack_wire(layout, into.subspan(places.size_bytes())).transform([](std::size_t) {});
}

result<void> check_key(const shm_key& key)
{
    if (key.magic != shm_key::form) {
        return fail(errc::unsupported, std::format("the key has form {:#x}", key.magic));
    }
    if (key.access == shm_access::none) {
        return fail(errc::unsupported, "peers cannot reach the memory");
    }
    if (key.access != shm_access::mapping && key.access != shm_access::process) {
        return fail(errc::malformed, "the key names no way of access");
    }
    if (key.length > limits::max_length || key.address > UINT64_MAX - key.length || key.generation == 0 ||
        key.record_length < sizeof(shm_record_header) || key.record_length > max_record_length ||
        key.record_offset > limits::max_length || key.record_offset % alignof(shm_record_header) != 0 ||
        key.records_fd < 0) {
        return fail(errc::malformed, "a number in the key is out of range");
    }
    return {};
}

result<shm_record> unpack_record(std::span<const std::byte> from, const shm_key& key)
{
    shm_record record;
    if (from.size() < sizeof(record.header)) {
        return fail(errc::malformed, "the record is shorter than its header");
    }
    std::memcpy(&record.header, from.data(), sizeof(record.header));
    from = from.subspan(sizeof(record.header));
    if (record.header.generation != key.generation) {
        return fail(errc::malformed, "the record is of another window");
    }
    if (record.header.num_sources > limits::max_sources || from.size() < places_length(record.header.num_sources)) {
        return fail(errc::malformed, "the number of sources in the record is out of range");
    }
    record.places.resize(record.header.num_sources);
    std::ranges::copy(from.first(places_length(record.header.num_sources)),
                      std::as_writable_bytes(std::span(record.places)).begin());
    from = from.subspan(places_length(record.header.num_sources));

    std::size_t consumed = 0;
    auto unpacked        = UCXL_TRY(unpack_wire(from, &consumed));
    record.layout        = std::move(unpacked);
    if (consumed != from.size() || record.layout->num_sources() != record.header.num_sources ||
        record.layout->packed_length() != key.length) {
        return fail(errc::malformed, "the layout in the record is not that of the key");
    }
    UCXL_TRY(check_places(*record.layout, record.places, key.access));
    return record;
}

} // namespace ucxl
