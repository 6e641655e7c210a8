#include "message.h"

#include "sys/hash.h"
#include "sys/magic.h"

#include <cstring>
#include <type_traits>

namespace ucxl::nixl
{

namespace
{

// The first letter is the version of all that is here.
constexpr auto message_magic    = magic<std::uint32_t>("\3nlm");
constexpr auto region_magic     = magic<std::uint32_t>("\3nlr");
constexpr auto connection_magic = magic<std::uint32_t>("\3nlc");
constexpr auto data_magic       = magic<std::uint32_t>("\3nld");

constexpr std::uint32_t max_regions = 1U << 16; // sources of a layout

struct message_header {
    std::uint32_t magic;
    std::uint32_t kind;
    std::uint64_t sender, window;
    std::int32_t status;
    std::uint32_t num_regions;
    std::uint64_t address, length, piece;
    std::uint32_t name_length, way;
    process_identity process;
};
static_assert(sizeof(message_header) == 96);

struct data_record {
    std::uint32_t magic, reserved;
    std::uint64_t sender, window, offset, piece;
};
static_assert(sizeof(data_record) == 40);

struct region_record {
    std::uint32_t magic, reserved;
    std::uint64_t id, address, length;
};
static_assert(sizeof(region_record) == 32);

struct connection_record {
    std::uint32_t magic, address_length;
    std::uint64_t instance;
    process_identity process;
    std::uint64_t hash; // of the rest, and of the address behind it; another function needs another version
};
static_assert(sizeof(connection_record) == 56);

template <typename Record>
std::string bytes_of(const Record& record)
{
    static_assert(std::is_trivially_copyable_v<Record>);
    return std::string(reinterpret_cast<const char*>(&record), sizeof(record));
}

// The record that the bytes begin with, if it has that magic number.
template <typename Record>
std::optional<Record> record_of(std::string_view bytes, std::uint32_t magic)
{
    Record record;
    if (bytes.size() < sizeof(record)) {
        return std::nullopt;
    }
    std::memcpy(&record, bytes.data(), sizeof(record));
    return record.magic == magic ? std::optional(record) : std::nullopt;
}

} // namespace

std::string encode(const message& from)
{
    std::string bytes = bytes_of(message_header{.magic       = message_magic,
                                                .kind        = static_cast<std::uint32_t>(from.kind),
                                                .sender      = from.sender,
                                                .window      = from.window,
                                                .status      = from.status,
                                                .num_regions = static_cast<std::uint32_t>(from.regions.size()),
                                                .address     = from.address,
                                                .length      = from.length,
                                                .piece       = from.piece,
                                                .name_length = static_cast<std::uint32_t>(from.name.size()),
                                                .way         = static_cast<std::uint32_t>(from.way),
                                                .process     = from.process});
    bytes.append(reinterpret_cast<const char*>(from.regions.data()), from.regions.size() * sizeof(from.regions[0]));
    bytes += from.name;
    bytes += from.bytes;
    return bytes;
}

std::optional<message> decode(std::string_view bytes)
{
    const auto header = record_of<message_header>(bytes, message_magic);
    if (!header || header->kind < static_cast<std::uint32_t>(message_kind::show) ||
        header->kind > static_cast<std::uint32_t>(message_kind::greeting) || header->num_regions > max_regions ||
        header->way > static_cast<std::uint32_t>(reach::kernel)) {
        return std::nullopt;
    }
    bytes.remove_prefix(sizeof(*header));
    const std::size_t regions_length = header->num_regions * sizeof(std::uint64_t);
    if (bytes.size() < regions_length || bytes.size() - regions_length < header->name_length) {
        return std::nullopt;
    }
    message read{.kind    = static_cast<message_kind>(header->kind),
                 .sender  = header->sender,
                 .window  = header->window,
                 .status  = header->status,
                 .way     = static_cast<reach>(header->way),
                 .address = header->address,
                 .length  = header->length,
                 .piece   = header->piece,
                 .process = header->process};
    read.regions.resize(header->num_regions);
    if (regions_length != 0) {
        std::memcpy(read.regions.data(), bytes.data(), regions_length);
    }
    bytes.remove_prefix(regions_length);
    read.name  = bytes.substr(0, header->name_length);
    read.bytes = bytes.substr(header->name_length);
    return read;
}

std::string encode(const data_header& from)
{
    return bytes_of(data_record{.magic    = data_magic,
                                .reserved = 0,
                                .sender   = from.sender,
                                .window   = from.window,
                                .offset   = from.offset,
                                .piece    = from.piece});
}

std::optional<data_header> decode_data(std::string_view bytes)
{
    const auto record = record_of<data_record>(bytes, data_magic);
    if (!record || bytes.size() != sizeof(*record)) {
        return std::nullopt;
    }
    return data_header{
        .sender = record->sender, .window = record->window, .offset = record->offset, .piece = record->piece};
}

std::string encode(const region_info& from)
{
    return bytes_of(region_record{
        .magic = region_magic, .reserved = 0, .id = from.id, .address = from.address, .length = from.length});
}

std::optional<region_info> decode_region(std::string_view bytes)
{
    const auto record = record_of<region_record>(bytes, region_magic);
    if (!record || bytes.size() != sizeof(*record) || record->address + record->length < record->address) {
        return std::nullopt;
    }
    return region_info{.id = record->id, .address = record->address, .length = record->length};
}

std::string encode(const connection_info& from)
{
    connection_record record{.magic          = connection_magic,
                             .address_length = static_cast<std::uint32_t>(from.address.size()),
                             .instance       = from.instance,
                             .process        = from.process,
                             .hash           = 0};
    record.hash = hash_text(bytes_of(record) + from.address);
    return bytes_of(record) + from.address;
}

std::optional<connection_info> decode_connection(std::string_view bytes)
{
    const auto record = record_of<connection_record>(bytes, connection_magic);
    if (!record || bytes.size() == sizeof(*record) || bytes.size() - sizeof(*record) != record->address_length) {
        return std::nullopt;
    }
    connection_info read{.instance = record->instance,
                         .process  = record->process,
                         .address  = std::string(bytes.substr(sizeof(*record)))};
    return encode(read) == bytes ? std::optional(std::move(read)) : std::nullopt;
}

} // namespace ucxl::nixl
