#include "key.h"

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

std::size_t bases_length(std::uint32_t num_sources)
{
    return num_sources * sizeof(std::int64_t);
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

result<void> check_bounds(const shm_record& record, std::uint64_t memory_length)
{
    for (std::uint32_t source = 0; source < record.header.num_sources; ++source) {
        const layout_bounds& bounds = record.layout->bounds(source);
        const bool has_bytes        = bounds.true_ub > bounds.true_lb;
        if (has_bytes && !is_inside(record.bases[source], bounds, memory_length)) {
            return fail(errc::malformed, std::format("source {} is not inside its memory", source));
        }
    }
    return {};
}

} // namespace

std::size_t record_length(const layout& layout)
{
    return record_bases_end(layout.num_sources()) + wire_length(layout);
}

result<void> pack_record(const shm_record_header& header, std::span<const std::int64_t> bases, const layout& layout,
                         std::span<std::byte> into)
{
    std::memcpy(into.data(), &header, sizeof(header));
    into = into.subspan(sizeof(header));
    std::ranges::copy(std::as_bytes(bases), into.begin());
    return pack_wire(layout, into.subspan(bases.size_bytes())).transform([](std::size_t) {});
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
    if (record.header.num_sources > limits::max_sources || from.size() < bases_length(record.header.num_sources) ||
        record.header.memory_fd < 0 || record.header.memory_length > 2 * limits::max_length) {
        return fail(errc::malformed, "a number in the record is out of range");
    }
    if (key.access == shm_access::process &&
        (record.header.memory_inode != 0 || record.header.memory_length != 0 || record.header.memory_fd != 0)) {
        return fail(errc::malformed, "the record names a file, its key does not");
    }
    record.bases.resize(record.header.num_sources);
    std::ranges::copy(from.first(bases_length(record.header.num_sources)),
                      std::as_writable_bytes(std::span(record.bases)).begin());
    from = from.subspan(bases_length(record.header.num_sources));

    std::size_t consumed = 0;
    auto unpacked        = UCXL_TRY(unpack_wire(from, &consumed));
    record.layout        = std::move(unpacked);
    if (consumed != from.size() || record.layout->num_sources() != record.header.num_sources ||
        record.layout->packed_length() != key.length) {
        return fail(errc::malformed, "the layout in the record is not that of the key");
    }
    const bool is_mapped = key.access == shm_access::mapping;
    UCXL_TRY(check_bounds(record, is_mapped ? record.header.memory_length : end_of_addresses));
    return record;
}

} // namespace ucxl
