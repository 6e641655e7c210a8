#include "exported_handle.h"

#include "sys/hash.h"

#include <bit>
#include <cstring>

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint32_t no_index = 0xffffffff;
constexpr std::uint16_t our_mark = 0x786c; // "lx"
constexpr std::uint8_t version   = 2;

struct [[gnu::packed]] wire_announcement {
    std::uint32_t key;
    std::uint64_t created;
};

// In the byte order of the host: both processes are on one device, and so of one kind of host. Mixed hosts fail at the
// mark or the checksum.
struct [[gnu::packed]] wire {
    std::uint32_t no_key; // where stock UCX has the key
    std::uint16_t mark;   // and the function
    std::uint8_t version;
    std::uint8_t num_announced;
    std::uint32_t key;
    std::uint16_t vhca_id;
    std::uint16_t is_window; // 0 or 1
    std::uint64_t created;
    access_token token;
    std::uint64_t address;
    std::uint64_t memory_bytes;
    std::array<wire_announcement, exported_handle::max_announced> announced; // those beyond the number are zeros
    std::uint64_t checksum; // of all before; against accidents, not against forgery
};

static_assert(sizeof(wire) == exported_handle::length && sizeof(wire) % sizeof(std::uint64_t) == 0);

std::uint64_t checksum_of(const wire& packed)
{
    std::array<std::uint64_t, sizeof(wire) / sizeof(std::uint64_t) - 1> words;
    std::memcpy(words.data(), &packed, sizeof(words));
    std::uint64_t value = 0;
    for (const std::uint64_t word : words) {
        value = (std::rotl(value, 29) ^ word) * 0x9e3779b97f4a7c15;
    }
    return mix(value);
}

} // namespace

void pack(const exported_handle& handle, std::span<std::byte, exported_handle::length> bytes)
{
    wire packed{.no_key        = no_index,
                .mark          = our_mark,
                .version       = version,
                .num_announced = handle.num_announced,
                .key           = handle.key.key,
                .vhca_id       = handle.key.vhca_id,
                .is_window     = handle.is_window ? std::uint16_t{1} : std::uint16_t{0},
                .created       = handle.key.created,
                .token         = handle.key.token,
                .address       = handle.address,
                .memory_bytes  = handle.memory_bytes,
                .announced     = {},
                .checksum      = 0};
    for (std::size_t i = 0; i < handle.num_announced; ++i) {
        packed.announced[i] = {.key = handle.announced[i].key, .created = handle.announced[i].created};
    }
    packed.checksum = checksum_of(packed);
    std::memcpy(bytes.data(), &packed, sizeof(packed));
}

bool is_exported_handle(const void* bytes, std::optional<std::size_t> size)
{
    if (size && *size != exported_handle::length) {
        return false;
    }
    wire packed;
    std::memcpy(&packed, bytes, offsetof(wire, version));
    return packed.no_key == no_index && packed.mark == our_mark;
}

result<exported_handle> unpack_exported(const void* bytes)
{
    wire packed;
    std::memcpy(&packed, bytes, sizeof(packed));
    if (packed.version != version) {
        return fail(errc::malformed,
                    std::format("version is {}, this library knows {}", unsigned{packed.version}, unsigned{version}));
    }
    if (packed.checksum != checksum_of(packed)) {
        return fail(errc::malformed, "checksum is wrong");
    }
    if (packed.is_window > 1) {
        return fail(errc::malformed, std::format("is_window is {}, the limit is 1", unsigned{packed.is_window}));
    }
    if (packed.num_announced > exported_handle::max_announced) {
        return fail(errc::malformed, std::format("num_announced is {}, the limit is {}", unsigned{packed.num_announced},
                                                 exported_handle::max_announced));
    }
    if (packed.memory_bytes > ~std::uint64_t{packed.address}) {
        return fail(errc::malformed, std::format("{} bytes at 0x{:x} go beyond the last address",
                                                 std::uint64_t{packed.memory_bytes}, std::uint64_t{packed.address}));
    }
    exported_handle handle{
        .key       = {.key = packed.key, .vhca_id = packed.vhca_id, .created = packed.created, .token = packed.token},
        .is_window = packed.is_window != 0,
        .address   = packed.address,
        .memory_bytes  = packed.memory_bytes,
        .announced     = {},
        .num_announced = packed.num_announced};
    for (std::size_t i = 0; i < packed.num_announced; ++i) {
        handle.announced[i] = {.key = packed.announced[i].key, .created = packed.announced[i].created};
    }
    return handle;
}

} // namespace ucxl::mlx5
