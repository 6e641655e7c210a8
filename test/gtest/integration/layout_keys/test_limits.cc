// At each limit of the device and just beyond it: the number of keys shows the chosen form, and the bytes arrive.
#include <array>

#include "key_test.h"

namespace ucxl::test
{
namespace
{

class key_limits : public key_test
{
protected:
    struct taken {
        std::uint32_t keys;
        std::uint32_t repeats;
        std::uint32_t fetched;

        bool operator==(const taken&) const = default;
        friend void PrintTo(const taken& one, std::ostream* out)
        {
            *out << one.keys << " keys, " << one.repeats << " repeats, " << one.fetched << " fetched";
        }
    };

    taken now(uct_mlx5_layout_region_h region) const
    {
        const auto attr = about(region);
        return {attr.num_keys, attr.num_repeats, attr.num_fetched};
    }

    // Offsets of pieces of 8 bytes that only a list can describe.
    static std::size_t start_of(std::size_t piece) { return piece * 16 + (piece * 2654435761U >> 16) % 8; }

    // Sets a list of such pieces, and reads its last bytes.
    void set_list(uct_mlx5_layout_region_h region, const buffer& memory, std::size_t pieces)
    {
        std::vector<ibv_sge> list;
        for (std::size_t i = 0; i < pieces; ++i) {
            list.push_back(memory.piece(start_of(i), 8));
        }
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, list.size(), list.data()), UCS_OK);
        const auto packed = zeroed(8);
        ASSERT_EQ(pair.read(packed->piece(0, 8), (pieces - 1) * 8, about(region).rkey), IBV_WC_SUCCESS);
        EXPECT_TRUE(std::equal(packed->bytes.begin(), packed->bytes.end(),
                               memory.bytes.begin() + static_cast<std::ptrdiff_t>(start_of(pieces - 1))));
    }

    // Three blocks at a stride; reads their last bytes.
    void set_strided(uct_mlx5_layout_region_h region, const buffer& memory, std::uint32_t length, std::int64_t stride)
    {
        uct_mlx5_layout_dim_t dim{3, stride};
        uct_mlx5_layout_item_t item{memory.piece(0, length), 1, &dim, 1};
        ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
        const auto packed = zeroed(4);
        ASSERT_EQ(pair.read(packed->piece(0, 4), 3 * length - 4, about(region).rkey), IBV_WC_SUCCESS);
        EXPECT_TRUE(std::equal(packed->bytes.begin(), packed->bytes.end(),
                               memory.bytes.begin() + static_cast<std::ptrdiff_t>(2 * stride + length - 4)));
    }
};

TEST_F(key_limits, entries_in_the_bind_request_and_one_more)
{
    const auto memory  = patterned(4096);
    const auto region  = new_region();
    std::uint32_t most = 0;
    for (std::size_t pieces = 3; pieces <= 64; ++pieces) {
        set_list(region, *memory, pieces);
        const taken form = now(region);
        EXPECT_EQ(form, (taken{1, 0, form.fetched}));
        most = form.fetched == 0 ? static_cast<std::uint32_t>(pieces) : most;
        EXPECT_EQ(form.fetched, pieces > most ? 1 : 0) << pieces << " pieces: fetched from one number on";
    }
    EXPECT_GE(most, 20);
    EXPECT_LT(most, 64);
}

TEST_F(key_limits, entries_of_one_list_and_one_more)
{
    const uct_mlx5_layout_attr_t caps = capabilities();
    const auto memory                 = patterned(std::size_t{caps.max_num_sg} * 16 + 64);
    const auto region                 = new_region(caps.max_num_sg);
    set_list(region, *memory, caps.max_num_sg);
    EXPECT_EQ(now(region), (taken{1, 0, 1}));
    set_list(region, *memory, caps.max_num_sg + 1);
    EXPECT_EQ(now(region), (taken{3, 0, 1})) << "a list of a full list and one of one entry";
}

TEST_F(key_limits, stride_and_length_of_a_repeat_block_and_one_more)
{
    if (!has_repeat_blocks()) {
        GTEST_SKIP() << "the device has no repeat blocks";
    }
    const auto memory = patterned(4 * 65536);
    const auto region = new_region();
    set_strided(region, *memory, 8, 65535);
    EXPECT_EQ(now(region), (taken{1, 1, 0}));
    set_strided(region, *memory, 8, 65536);
    EXPECT_EQ(now(region), (taken{1, 0, 0}));
    set_strided(region, *memory, 65534, 65535);
    EXPECT_EQ(now(region), (taken{1, 1, 0}));
    set_strided(region, *memory, 65536, 65540);
    EXPECT_EQ(now(region), (taken{1, 0, 0}));
}

TEST_F(key_limits, room_of_the_regions_own_key_and_one_more)
{
    const auto memory = patterned(4096);
    const auto region = new_region(8);
    set_list(region, *memory, 8);
    EXPECT_EQ(now(region).keys, 1);
    set_list(region, *memory, 9);
    EXPECT_EQ(now(region).keys, 2);
}

TEST_F(key_limits, a_small_own_key_shows_300000_irregular_blocks_through_full_nested_lists)
{
    constexpr std::size_t pieces = 300'000;
    const auto memory            = patterned(pieces * 16);
    const auto region            = new_region(64);
    set_list(region, *memory, pieces);
    const uct_mlx5_layout_attr_t caps = capabilities();
    EXPECT_EQ(now(region).keys, (pieces + caps.max_num_sg - 1) / caps.max_num_sg + 1);

    const auto packed = zeroed(pieces * 8);
    ASSERT_EQ(pair.read(packed->piece(0, pieces * 8), 0, about(region).rkey), IBV_WC_SUCCESS);
    std::vector<std::uint8_t> expected;
    for (std::size_t i = 0; i < pieces; ++i) {
        expected.insert(expected.end(), &memory->bytes[start_of(i)], &memory->bytes[start_of(i)] + 8);
    }
    EXPECT_TRUE(packed->bytes == expected);
}

} // namespace
} // namespace ucxl::test
