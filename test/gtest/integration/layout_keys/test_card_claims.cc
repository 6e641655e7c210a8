// Claims of docs/needs-hardware.md that no other test asks a card about. contrib/hw-check judges the claims by these
// tests, and reads the figures that they record (--gtest_output=json).
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "key_test.h"
#include "raw_binds.h"

namespace ucxl::test
{
namespace
{

// Not every card has atomic operations in keys.
constexpr unsigned without_atomics = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

using microseconds = std::chrono::duration<double, std::micro>;

// More than a plain check takes: contrib/hw-check asks a card for 100,000.
std::size_t wanted_rounds()
{
    const char* const wanted = std::getenv("UCXL_TEST_KEY_ROUNDS");
    return wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 1000;
}

class card_claims : public key_test
{
protected:
    static constexpr std::size_t piece_bytes = 8;

    // What the domain found to work.
    bool works(std::uint64_t flag) const { return (domain_flags() & flag) != 0; }

    // Pieces that only a list can describe.
    static std::vector<std::size_t> irregular(std::size_t number, std::size_t first = 0)
    {
        std::vector<std::size_t> offsets;
        for (std::size_t i = 0; i < number; ++i) {
            offsets.push_back(first + i * 16 + (i * 2654435761U >> 16) % 8);
        }
        return offsets;
    }

    static std::vector<ibv_sge> pieces_of(const buffer& memory, std::span<const std::size_t> offsets)
    {
        std::vector<ibv_sge> pieces;
        for (const std::size_t offset : offsets) {
            pieces.push_back(memory.piece(offset, piece_bytes));
        }
        return pieces;
    }

    // Reads all bytes that a key should show, and writes others to them.
    void expect_pieces(std::uint32_t rkey, buffer& memory, std::span<const std::size_t> offsets)
    {
        const std::size_t length = offsets.size() * piece_bytes;
        const auto packed        = zeroed(length);
        ASSERT_EQ(pair.read(packed->piece(0, length), 0, rkey), IBV_WC_SUCCESS);
        auto expected = memory.bytes;
        for (std::size_t i = 0; i < length; ++i) {
            std::uint8_t& shown = expected[offsets[i / piece_bytes] + i % piece_bytes];
            ASSERT_EQ(packed->bytes[i], shown) << "byte " << i;
            shown            = static_cast<std::uint8_t>(~shown);
            packed->bytes[i] = shown;
        }
        ASSERT_EQ(pair.write(packed->piece(0, length), 0, rkey), IBV_WC_SUCCESS);
        ASSERT_TRUE(memory.bytes == expected);
    }

    // The words of a strided region are written by one request, and the CPU waits for the last one. Returns how many
    // words were not there when the last one was.
    std::size_t late_words(std::uint32_t rkey, std::uint64_t address, buffer& memory, std::size_t stride,
                           std::uint64_t value)
    {
        const auto packed = zeroed(num_words * sizeof(value));
        for (std::size_t i = 0; i < num_words; ++i) {
            std::memcpy(&packed->bytes[i * sizeof(value)], &value, sizeof(value));
        }
        const auto word = [&](std::size_t i) {
            return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(memory.bytes.data() + i * stride),
                                   __ATOMIC_ACQUIRE);
        };
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        pair.post_write(packed->piece(0, packed->bytes.size()), address, rkey);
        while (word(num_words - 1) != value && std::chrono::steady_clock::now() < deadline) {
        }
        std::size_t late = 0;
        for (std::size_t i = num_words; i > 0; --i) {
            late += word(i - 1) != value ? 1 : 0;
        }
        EXPECT_EQ(pair.wait().status, IBV_WC_SUCCESS);
        return late;
    }

    static constexpr std::size_t num_words = 2048;
};

TEST_F(card_claims, two_lists_in_memory_are_bound_by_one_call)
{
    if (!works(UCT_MLX5_LAYOUT_CAP_POINTER)) {
        GTEST_SKIP() << "the device takes no lists from memory";
    }
    constexpr std::size_t number = 100; // 1600 bytes of entries: the second list begins 2 KB behind the first one
    const auto memory            = patterned(number * 32 + 64);
    const std::array offsets{irregular(number), irregular(number, number * 16)};
    const std::array regions{new_region(128, 0, without_atomics), new_region(128, 0, without_atomics)};
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const auto pieces = pieces_of(*memory, offsets[i]);
        ASSERT_EQ(uct_mlx5_layout_set_sg(regions[i], UCT_MLX5_LAYOUT_SET_WITH_POST_WR, pieces.size(), pieces.data()),
                  UCS_OK);
    }
    ASSERT_EQ(uct_mlx5_layout_bind(regions.data(), regions.size()), UCS_OK);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        EXPECT_EQ(about(regions[i]).num_fetched, 1) << "the list is in memory";
        expect_pieces(about(regions[i]).rkey, *memory, offsets[i]);
    }
}

TEST_F(card_claims, each_of_many_batches_is_in_force_when_its_keys_are_used)
{
    constexpr std::size_t num_regions = 4;
    const auto memory                 = patterned(8192);
    const auto packed                 = zeroed(2 * piece_bytes);
    std::vector<uct_mlx5_layout_region_h> regions;
    for (std::size_t i = 0; i < num_regions; ++i) {
        regions.push_back(new_region(4, 0, without_atomics));
    }
    const std::size_t rounds = wanted_rounds();
    for (std::size_t round = 0; round < rounds; ++round) {
        const auto first  = [&](std::size_t i) { return (round * 24 + i * 1000) % 4000; };
        const auto second = [&](std::size_t i) { return 4000 + (round * 40 + i * 16) % 4000; };
        for (std::size_t i = 0; i < num_regions; ++i) {
            const std::array pieces{memory->piece(first(i), piece_bytes), memory->piece(second(i), piece_bytes)};
            ASSERT_EQ(uct_mlx5_layout_set_sg(regions[i], UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 2, pieces.data()), UCS_OK);
        }
        // In turn: used behind the binds on their own queue pair, without waiting, and elsewhere after the completion.
        const bool on_the_pair = round % 2 == 0;
        ASSERT_EQ(on_the_pair ? uct_mlx5_layout_post_bind(pair.qp(), regions.data(), num_regions, 0, 0)
                              : uct_mlx5_layout_bind(regions.data(), num_regions),
                  UCS_OK)
            << "round " << round;
        for (std::size_t i = 0; i < num_regions; ++i) {
            ASSERT_EQ(pair.read(packed->piece(0, 2 * piece_bytes), 0, about(regions[i]).rkey), IBV_WC_SUCCESS)
                << "round " << round;
            for (std::size_t byte = 0; byte < piece_bytes; ++byte) {
                ASSERT_EQ(packed->bytes[byte], memory->bytes[first(i) + byte]) << "round " << round;
                ASSERT_EQ(packed->bytes[piece_bytes + byte], memory->bytes[second(i) + byte]) << "round " << round;
            }
        }
        ASSERT_EQ(uct_mlx5_layout_invalidate(regions.data(), num_regions), UCS_OK) << "round " << round;
    }
    RecordProperty("batches", std::to_string(rounds));
}

TEST_F(card_claims, keys_below_the_first_one_are_read_and_written_through_it)
{
    const uct_mlx5_layout_attr_t caps = capabilities();
    if (caps.max_depth < 2) {
        GTEST_SKIP() << "the device has no keys over keys";
    }
    const std::size_t number = std::min<std::size_t>(caps.max_num_sg, 4096) + 1;
    const auto memory        = patterned(number * 16 + 64);
    const auto offsets       = irregular(number);
    const auto pieces        = pieces_of(*memory, offsets);
    const auto region        = new_region(8, 0, without_atomics); // too small for the list, which becomes keys below it
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
    EXPECT_GT(about(region).num_keys, 1);
    RecordProperty("local_rights", works(UCT_MLX5_LAYOUT_CAP_LOCAL_NESTED) ? "yes" : "no");
    expect_pieces(about(region).rkey, *memory, offsets);
}

TEST_F(card_claims, indexes_of_keys_are_below_the_mark)
{
    constexpr std::uint32_t mark = 0xff0000;
    const auto memory            = zeroed(4096);
    std::uint32_t highest        = memory->mr->lkey >> 8;
    for (std::size_t i = 0; i < 1000; ++i) {
        highest = std::max(highest, about(new_region(4, 0, without_atomics)).lkey >> 8);
    }
    RecordProperty("highest_index", std::to_string(highest));
    EXPECT_LT(highest, mark);
}

TEST_F(card_claims, a_chain_one_too_deep_is_bound_and_fails_when_used)
{
    const auto memory = zeroed(4096);
    ibv_sge below     = memory->piece(0, 1024);
    for (std::uint32_t level = 0; level < capabilities().max_depth; ++level) {
        const auto region = new_region(4, 0, without_atomics);
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &below), UCS_OK);
        below = {0, 1024, about(region).lkey};
    }
    const auto packed = zeroed(64);
    ASSERT_EQ(pair.write(packed->piece(0, 64), 0, below.lkey), IBV_WC_SUCCESS) << "as deep as the device says";
    raw_binds binds(pair);
    const raw_key deeper(pair.pd(), 4);
    const std::array entries{raw_binds::entry(below)};
    EXPECT_EQ(binds.execute(binds.list(deeper, entries)), IBV_WC_SUCCESS);
    EXPECT_NE(pair.write(packed->piece(0, 64), 0, deeper.number()), IBV_WC_SUCCESS);
    pair.reconnect();
}

TEST_F(card_claims, an_entry_of_no_bytes_is_empty)
{
    const auto memory = patterned(4096);
    const std::array entries{raw_binds::entry(memory->piece(100, piece_bytes)),
                             raw_binds::entry(memory->piece(1000, 0)),
                             raw_binds::entry(memory->piece(3000, piece_bytes))};
    raw_binds binds(pair);
    const raw_key key(pair.pd(), 4);
    ASSERT_EQ(binds.execute(binds.list(key, entries)), IBV_WC_SUCCESS);
    expect_pieces(key.number(), *memory, std::array<std::size_t, 2>{100, 3000});
}

// In the adversarial order of the software device the last word may come first.
TEST_F(card_claims, the_last_word_of_a_write_comes_last)
{
    if (std::getenv("SOFTHCA_ORDER") != nullptr) {
        GTEST_SKIP() << "another order was asked for";
    }
    constexpr std::size_t stride = 24;
    const auto memory            = zeroed(num_words * stride);
    const auto plain             = zeroed(num_words * sizeof(std::uint64_t));
    uct_mlx5_layout_dim_t dim{num_words, stride};
    uct_mlx5_layout_item_t item{memory->piece(0, sizeof(std::uint64_t)), 1, &dim, 1};
    const auto region = new_region(num_words, 0, without_atomics);
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
    std::size_t late       = 0;
    std::size_t late_plain = 0;
    for (std::uint64_t round = 1; round <= std::min<std::size_t>(wanted_rounds(), 2000); ++round) {
        late += late_words(about(region).rkey, 0, *memory, stride, round);
        late_plain += late_words(plain->mr->rkey, plain->address(), *plain, sizeof(std::uint64_t), round);
    }
    RecordProperty("late_words", std::to_string(late));
    RecordProperty("late_words_of_plain_memory", std::to_string(late_plain));
    EXPECT_EQ(late, 0);
}

TEST_F(card_claims, times_of_1000_keys)
{
    constexpr std::size_t number = 1000;
    constexpr std::size_t batch  = 50;
    const auto memory            = zeroed(4096);
    const std::array pieces{memory->piece(0, 8), memory->piece(100, 8)};
    uct_mlx5_layout_region_params_t params{};
    params.field_mask  = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS | UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES;
    params.access      = without_atomics;
    params.max_entries = 4;
    std::vector<uct_mlx5_layout_region_h> regions(number);
    // The median of the times of one call, divided by the keys of each call.
    const auto time = [&](const char* name, std::size_t keys_of_each, const auto& call) {
        std::vector<double> taken;
        for (std::size_t i = 0; i < number; i += keys_of_each) {
            const auto begin = std::chrono::steady_clock::now();
            call(i);
            taken.push_back(microseconds(std::chrono::steady_clock::now() - begin).count());
        }
        std::ranges::nth_element(taken, taken.begin() + std::ssize(taken) / 2);
        RecordProperty(name, std::to_string(taken[taken.size() / 2] / static_cast<double>(keys_of_each)));
    };
    time("create_us", 1, [&](std::size_t i) {
        check_ok(uct_mlx5_layout_region_create(domain, &params, &regions[i]), "uct_mlx5_layout_region_create");
    });
    for (uct_mlx5_layout_region_h region : regions) {
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, pieces.size(), pieces.data()),
                  UCS_OK);
    }
    time("bind_us", batch,
         [&](std::size_t i) { check_ok(uct_mlx5_layout_bind(&regions[i], batch), "uct_mlx5_layout_bind"); });
    time("invalidate_us", batch, [&](std::size_t i) {
        check_ok(uct_mlx5_layout_invalidate(&regions[i], batch), "uct_mlx5_layout_invalidate");
    });
    time("destroy_us", 1, [&](std::size_t i) { uct_mlx5_layout_region_destroy(regions[i]); });
}

} // namespace
} // namespace ucxl::test
