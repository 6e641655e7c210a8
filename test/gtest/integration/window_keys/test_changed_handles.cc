// Handles with changed fields. Announced keys that do not exist, or are not open: the importing side tries to make
// aliases of them in its thread, and nothing else happens. Keys of the number of another one: their alias is not used.
#include "device_control.h"
#include "dpu.h"
#include "library_part.h"
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
    auto packed     = exported(buffer.memh());
    const auto part = part_of_the_library(packed);
    auto handle     = unpacked(packed);
    imported_memory{importing.get(), packed}; // makes the alias, which stays
    const auto before  = device.objects();
    const auto refused = device.failed_commands();
    for (unsigned round = 0; round < rounds; ++round) {
        handle.num_announced = exported_handle::max_announced;
        for (auto& each : handle.announced) {
            // Keys of the device are small numbers. Some exist, and are not open with this token.
            each = {.key     = static_cast<std::uint32_t>(random.one_in(2) ? random.below(1 << 16) : random.next()),
                    .created = random.next()};
            if (each.key >> 8 == handle.key.key >> 8) {
                each.key ^= 1u << 30;
            }
        }
        mlx5::pack(handle, part);
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

class keys_of_one_number : public ucx_test
{
protected:
    // The handle after somebody has changed it.
    template <typename Change>
    std::vector<std::byte> changed(Change&& change) const
    {
        std::vector<std::byte> other = _packed;
        exported_handle handle       = unpacked(other);
        change(handle.key);
        mlx5::pack(handle, part_of_the_library(other));
        return other;
    }

    const device_control _device;
    own_peer _host;
    const test::context _dpu{dpu_context(false)};
    plain_buffer _buffer{_host.context()};
    const std::vector<std::byte> _packed = exported(_buffer.memh());
};

// A host that was started again may have made a key of the same number, which the alias of the old one does not show.
TEST_F(keys_of_one_number, have_an_alias_each)
{
    const imported_memory first(_dpu.get(), _packed);
    check_ok(first.status(), "import");
    const auto keys       = _device.objects().keys;
    const auto made_again = changed([](mlx5::exported_key& key) { ++key.created; });
    const imported_memory second(_dpu.get(), made_again);
    check_ok(second.status(), "import of a key that was made again");
    EXPECT_EQ(_device.objects().keys, keys + 1);
    const imported_memory third(_dpu.get(), made_again);
    check_ok(third.status(), "the same import");
    EXPECT_EQ(_device.objects().keys, keys + 1);
}

TEST_F(keys_of_one_number, are_not_imported_without_the_right_token)
{
    const imported_memory first(_dpu.get(), _packed);
    check_ok(first.status(), "import");
    const auto keys  = _device.objects().keys;
    const auto other = changed([](mlx5::exported_key& key) { key.token.back() ^= std::byte{1}; });
    logs().expect("no suitable UCT memory domains");
    const imported_memory second(_dpu.get(), other);
    EXPECT_NE(second.status(), UCS_OK);
    EXPECT_EQ(_device.objects().keys, keys);
}

} // namespace
} // namespace ucxl::test
