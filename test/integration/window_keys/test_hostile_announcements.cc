// Handles that announce keys which do not exist, or are not open: the importing side tries to make aliases of them in
// its thread, and nothing else happens.
#include "device_control.h"
#include "dpu.h"
#include "own_peer.h"

#include "support/log_guard.h"
#include "support/random.h"
#include "support/wait_until.h"
#include "uct/ib/mlx5/domain/exported_handle.h"

#include <algorithm>

namespace ucxl::test
{
namespace
{

using mlx5::exported_handle;

class announced_keys : public ucx_test
{
};

TEST_F(announced_keys, that_nobody_has_cost_nothing)
{
    constexpr unsigned rounds = 50;
    random random(run_seed());
    const device_control device;
    own_peer host;
    dpu_side dpu;
    const test::context importing(dpu_context(false));
    plain_buffer buffer(host.context());
    auto packed = exported(buffer.memh());
    // No other part of it begins with a key that no device has.
    const std::array<std::byte, 4> mark{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
    const auto found = std::ranges::search(packed, mark);
    ASSERT_LE(exported_handle::length, static_cast<std::size_t>(packed.end() - found.begin()));
    const std::span<std::byte, exported_handle::length> part(found.begin(), exported_handle::length);
    auto handle = mlx5::unpack_exported(part.data());
    ASSERT_TRUE(handle);
    imported_memory{importing.get(), packed}; // makes the alias, which stays
    const auto before  = device.objects();
    const auto refused = device.failed_commands();
    for (unsigned round = 0; round < rounds; ++round) {
        handle->num_announced = exported_handle::max_announced;
        for (auto& each : handle->announced) {
            // Keys of the device are small numbers. Some exist, and are not open with this token.
            each = {.key     = static_cast<std::uint32_t>(random.one_in(2) ? random.below(1 << 16) : random.next()),
                    .created = random.next()};
            if (each.key >> 8 == handle->key.key >> 8) {
                each.key ^= 1u << 30;
            }
        }
        mlx5::pack(*handle, part);
        const imported_memory imported(importing.get(), packed);
        ASSERT_EQ(imported.status(), UCS_OK);
    }
    EXPECT_TRUE(wait_until([&] {
        return device.failed_commands() >= refused + std::uint64_t{rounds} * exported_handle::max_announced;
    })) << device.failed_commands() - refused;
    EXPECT_EQ(device.objects(), before);
    const imported_memory imported(dpu.context(), packed);
    buffer.bytes().front() = std::byte{0x31};
    std::vector<std::byte> got(buffer.bytes().size());
    EXPECT_EQ(dpu.read(imported, buffer.address(), got), UCS_OK);
    EXPECT_TRUE(std::ranges::equal(got, buffer.bytes()));
}

} // namespace
} // namespace ucxl::test
