// The handle of exported memory: it comes back as it was packed, and any other bytes are refused.
#include "uct/ib/mlx5/domain/exported_handle.h"

#include "support/random.h"

#include <gtest/gtest.h>

namespace
{

using namespace ucxl::mlx5;

using packed_bytes = std::array<std::byte, exported_handle::length>;

exported_handle random_handle(ucxl::test::random& random)
{
    exported_handle made{.key           = {.key     = static_cast<std::uint32_t>(random.next()),
                                           .vhca_id = static_cast<std::uint16_t>(random.next()),
                                           .created = random.next(),
                                           .token   = {}},
                         .is_window     = random.below(2) == 1,
                         .address       = random.next() >> 1,
                         .memory_bytes  = random.next() >> 1,
                         .num_announced = static_cast<std::uint8_t>(random.below(exported_handle::max_announced + 1))};
    for (std::byte& each : made.key.token) {
        each = static_cast<std::byte>(random.next());
    }
    for (std::size_t i = 0; i < made.num_announced; ++i) {
        made.announced[i] = {.key = static_cast<std::uint32_t>(random.next()), .created = random.next()};
    }
    return made;
}

TEST(exported_handle, comes_back_as_it_was_packed)
{
    ucxl::test::random random(ucxl::test::run_seed());
    for (int round = 0; round < 1000; ++round) {
        const auto handle = random_handle(random);
        packed_bytes bytes;
        pack(handle, bytes);
        ASSERT_TRUE(is_exported_handle(bytes.data()));
        const auto unpacked = unpack_exported(bytes.data());
        ASSERT_TRUE(unpacked) << unpacked.error().message;
        EXPECT_EQ(*unpacked, handle);
    }
}

TEST(exported_handle, with_a_changed_byte_is_refused)
{
    ucxl::test::random random(ucxl::test::run_seed());
    packed_bytes bytes;
    pack(random_handle(random), bytes);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (unsigned flipped = 1; flipped < 256; ++flipped) {
            packed_bytes changed = bytes;
            changed[at] ^= static_cast<std::byte>(flipped);
            EXPECT_FALSE(is_exported_handle(changed.data()) && unpack_exported(changed.data())) << "byte " << at;
        }
    }
}

TEST(exported_handle, of_another_version_is_refused_by_its_name)
{
    packed_bytes bytes;
    pack({}, bytes);
    bytes[6] = std::byte{9};
    EXPECT_EQ(unpack_exported(bytes.data()).error().message, "version is 9, this library knows 2");
}

// Key 0xffffff of a function that has no such number: no stock UCX packs it.
TEST(exported_handle, is_told_from_a_key_of_ucx_by_six_bytes)
{
    const std::array<std::byte, 6> stock{};
    EXPECT_FALSE(is_exported_handle(stock.data()));
}

// A peer may send less than a handle that begins like one.
TEST(exported_handle, of_another_length_is_none)
{
    packed_bytes bytes;
    pack({}, bytes);
    EXPECT_TRUE(is_exported_handle(bytes.data(), bytes.size()));
    EXPECT_FALSE(is_exported_handle(bytes.data(), 6));
    EXPECT_FALSE(is_exported_handle(bytes.data(), bytes.size() - 1));
}

} // namespace
