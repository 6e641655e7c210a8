#include "exported_handle.h"

#include "sys/hash.h"

#include <cstring>
#include <string_view>

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint32_t no_index = 0xffffffff;
constexpr std::uint16_t our_mark = 0x786c; // "lx"
constexpr std::uint8_t version   = 1;

// In the byte order of the host: both processes are on one device, and so of one kind of host. Mixed hosts fail at the
// mark or the checksum.
struct [[gnu::packed]] wire {
    std::uint32_t no_key; // where stock UCX has the key
    std::uint16_t mark;   // and the function
    std::uint8_t version;
    std::uint8_t unused;
    std::uint32_t key;
    std::uint16_t vhca_id;
    std::uint16_t reserved;
    std::uint64_t created;
    access_token token;
    std::uint64_t reserved_too;
    std::uint64_t checksum; // of all before; against accidents, not against forgery
};

static_assert(sizeof(wire) == exported_handle::length);

std::uint64_t checksum_of(const wire& packed)
{
    return mix(hash_text({reinterpret_cast<const char*>(&packed), offsetof(wire, checksum)}));
}

} // namespace

void pack(const exported_handle& handle, std::span<std::byte, exported_handle::length> bytes)
{
    wire packed{.no_key       = no_index,
                .mark         = our_mark,
                .version      = version,
                .unused       = 0,
                .key          = handle.key,
                .vhca_id      = handle.vhca_id,
                .reserved     = 0,
                .created      = handle.created,
                .token        = handle.token,
                .reserved_too = 0,
                .checksum     = 0};
    packed.checksum = checksum_of(packed);
    std::memcpy(bytes.data(), &packed, sizeof(packed));
}

bool is_exported_handle(const void* bytes)
{
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
    if (packed.unused != 0 || packed.reserved != 0 || packed.reserved_too != 0) {
        return fail(errc::malformed, "a reserved field is not 0");
    }
    return exported_handle{
        .key = packed.key, .vhca_id = packed.vhca_id, .created = packed.created, .token = packed.token};
}

} // namespace ucxl::mlx5
