// Layouts over memory that is not one plain region: memory on the device, and more memory than 32-bit fields can
// describe.
#include <array>

#include <sys/mman.h>

#include "key_test.h"

namespace ucxl::test
{
namespace
{

class memory_kinds : public key_test
{
};

TEST_F(memory_kinds, memory_on_the_device_beside_host_memory)
{
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(pair.context(), nullptr, &device), 0);
    if (device.max_dm_size == 0) {
        GTEST_SKIP() << "the device has no memory of its own";
    }
    ibv_alloc_dm_attr wanted{};
    wanted.length    = 4096;
    ibv_dm* const dm = ibv_alloc_dm(pair.context(), &wanted);
    ASSERT_NE(dm, nullptr);
    ibv_mr* const mr = ibv_reg_dm_mr(pair.pd(), dm, 0, 4096, IBV_ACCESS_ZERO_BASED | static_cast<int>(every_access));
    ASSERT_NE(mr, nullptr);
    std::array<std::uint8_t, 4096> on_device{};
    ASSERT_EQ(ibv_memcpy_to_dm(dm, 0, on_device.data(), on_device.size()), 0);

    const auto memory = zeroed(4096);
    const auto packed = patterned(96);
    const std::array<ibv_sge, 3> pieces{ibv_sge{1024, 32, mr->lkey}, memory->piece(100, 32), ibv_sge{64, 32, mr->lkey}};
    const auto region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
    ASSERT_EQ(pair.write(packed->piece(0, 96), 0, about(region).rkey), IBV_WC_SUCCESS);

    ASSERT_EQ(ibv_memcpy_from_dm(on_device.data(), dm, 0, on_device.size()), 0);
    for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_EQ(on_device[1024 + i], packed->bytes[i]);
        EXPECT_EQ(memory->bytes[100 + i], packed->bytes[32 + i]);
        EXPECT_EQ(on_device[64 + i], packed->bytes[64 + i]);
    }
    EXPECT_EQ(uct_mlx5_layout_invalidate(&region, 1), UCS_OK);
    ibv_dereg_mr(mr);
    ibv_free_dm(dm);
}

// Two pieces of 3 GiB, each larger than one entry, accessed near their ends. The memory is reserved, not used.
TEST_F(memory_kinds, pieces_of_gigabytes)
{
    constexpr std::size_t piece_bytes = std::size_t{3} << 30;
    constexpr std::size_t size        = 2 * piece_bytes + 4096;
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ibv_mr* const mr = ibv_reg_mr(pair.pd(), memory, size, static_cast<int>(every_access));
    ASSERT_NE(mr, nullptr);
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    const std::array<ibv_sge, 2> pieces{ibv_sge{first, 3U << 30, mr->lkey},
                                        ibv_sge{first + piece_bytes + 4096, 3U << 30, mr->lkey}};
    const auto region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
    EXPECT_EQ(about(region).length, 2 * piece_bytes);

    const auto packed = patterned(200);
    ASSERT_EQ(pair.write(packed->piece(0, 200), piece_bytes - 100, about(region).rkey), IBV_WC_SUCCESS);
    ASSERT_EQ(pair.write(packed->piece(0, 200), 2 * piece_bytes - 200, about(region).rkey), IBV_WC_SUCCESS);
    const auto* const bytes = static_cast<const std::uint8_t*>(memory);
    for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_EQ(bytes[piece_bytes - 100 + i], packed->bytes[i]);
        EXPECT_EQ(bytes[piece_bytes + 4096 + i], packed->bytes[100 + i]);
        EXPECT_EQ(bytes[size - 200 + i], packed->bytes[i]);
    }
    EXPECT_EQ(uct_mlx5_layout_invalidate(&region, 1), UCS_OK);
    ibv_dereg_mr(mr);
    munmap(memory, size);
}

} // namespace
} // namespace ucxl::test
