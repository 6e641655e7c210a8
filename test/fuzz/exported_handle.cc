// Any bytes as the handle of memory that another process of the device exports (src/uct/ib/mlx5/domain): refused with a
// message, or a handle whose numbers keep their limits and that comes back from its own bytes. Once as they are, and
// once with the checksum that a peer who lies would write.
#include "fuzz_target.h"

#include "sys/hash.h"
#include "uct/ib/mlx5/domain/exported_handle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

using namespace ucxl;
using fuzz::require;
using mlx5::exported_handle;

namespace
{

using handle_bytes = std::array<std::byte, exported_handle::length>;

constexpr std::size_t num_words = exported_handle::length / sizeof(std::uint64_t);

// As exported_handle.cc has it: all words but the last one, which is the sum.
void make_checksum_right(handle_bytes& bytes)
{
    auto words          = std::bit_cast<std::array<std::uint64_t, num_words>>(bytes);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i + 1 < num_words; ++i) {
        value = (std::rotl(value, 29) ^ words[i]) * 0x9e3779b97f4a7c15;
    }
    words.back() = mix(value);
    bytes        = std::bit_cast<handle_bytes>(words);
}

void check(const handle_bytes& bytes)
{
    if (!mlx5::is_exported_handle(bytes.data())) {
        return;
    }
    const auto unpacked = mlx5::unpack_exported(bytes.data());
    if (!unpacked) {
        require(!unpacked.error().message.empty(), "an error says why");
        return;
    }
    const exported_handle& handle = *unpacked;
    require(handle.num_announced <= exported_handle::max_announced, "no more keys than there is room for");
    require(handle.address + handle.memory_bytes >= handle.address, "memory does not go beyond the last address");
    handle_bytes again{};
    pack(handle, again);
    const auto back = mlx5::unpack_exported(again.data());
    require(back.has_value() && *back == handle, "a handle comes back from its bytes");
    for (std::size_t i = 0; i < again.size(); ++i) {
        handle_bytes damaged = again;
        damaged[i] ^= std::byte{1};
        require(!mlx5::is_exported_handle(damaged.data()) || !mlx5::unpack_exported(damaged.data()),
                "a damaged handle is refused");
    }
}

} // namespace

UCXL_FUZZ_TARGET(exported_handle)
{
    handle_bytes bytes{};
    std::memcpy(bytes.data(), data, std::min(size, bytes.size()));
    check(bytes);
    make_checksum_right(bytes);
    check(bytes);
    return 0;
}
