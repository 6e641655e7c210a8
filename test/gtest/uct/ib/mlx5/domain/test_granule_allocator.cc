#include "uct/ib/mlx5/domain/granule_allocator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "support/alloc_failure.h"
#include "support/random.h"

namespace ucxl::test
{
namespace
{

using mlx5::granule_allocator;

constexpr std::uint64_t granule = granule_allocator::granule;

TEST(granule_allocator, rounds_up_to_granules)
{
    EXPECT_EQ(granule_allocator::rounded(1), 8u);
    EXPECT_EQ(granule_allocator::rounded(8), 8u);
    EXPECT_EQ(granule_allocator::rounded(9), 16u);
}

TEST(granule_allocator, gives_all_of_it_out_in_words_and_then_nothing)
{
    granule_allocator rooms(1024);
    std::vector<bool> is_taken(1024 / granule);
    for (std::size_t i = 0; i < is_taken.size(); ++i) {
        const auto offset = rooms.take(1);
        ASSERT_TRUE(offset.has_value());
        ASSERT_EQ(*offset % granule, 0u);
        ASSERT_FALSE(is_taken[*offset / granule]);
        is_taken[*offset / granule] = true;
    }
    EXPECT_EQ(rooms.free_bytes(), 0u);
    EXPECT_FALSE(rooms.take(1).has_value());
    EXPECT_FALSE(rooms.has_room(1));
    EXPECT_TRUE(rooms.give_back(512));
    EXPECT_EQ(rooms.take(8), 512u);
}

TEST(granule_allocator, aligns_whole_lines_and_uses_the_gap_before_them)
{
    granule_allocator rooms(256);
    EXPECT_EQ(rooms.take(8), 0u);
    EXPECT_EQ(rooms.take(100), 64u);
    EXPECT_EQ(rooms.take(56), 8u);
    EXPECT_FALSE(rooms.take(96).has_value()); // 88 are left, but from 168 on
    EXPECT_EQ(rooms.take(64), 192u);
    EXPECT_EQ(rooms.take(24), 168u);
    EXPECT_EQ(rooms.free_bytes(), 0u);
}

TEST(granule_allocator, gives_back_only_what_begins_there)
{
    granule_allocator rooms(256);
    ASSERT_EQ(rooms.take(16), 0u);
    EXPECT_FALSE(rooms.give_back(8));
    EXPECT_FALSE(rooms.give_back(16));
    EXPECT_FALSE(rooms.give_back(1 << 20));
    EXPECT_TRUE(rooms.give_back(0));
    EXPECT_FALSE(rooms.give_back(0));
    EXPECT_EQ(rooms.free_bytes(), 256u);
}

TEST(granule_allocator, finds_no_range_that_reaches_into_a_neighbour)
{
    granule_allocator rooms(64);
    ASSERT_EQ(rooms.take(16), 0u);
    ASSERT_EQ(rooms.take(8), 16u);
    const auto inside = rooms.find(9, 7);
    ASSERT_TRUE(inside.has_value());
    EXPECT_EQ(inside->offset, 0u);
    EXPECT_EQ(inside->length, 16u);
    EXPECT_FALSE(rooms.find(9, 8).has_value());
    EXPECT_TRUE(rooms.find(15, 0).has_value());
    EXPECT_EQ(rooms.find(16, 0)->offset, 16u);
    EXPECT_FALSE(rooms.find(16, 9).has_value());
    EXPECT_FALSE(rooms.find(24, 0).has_value());
    EXPECT_FALSE(rooms.find(64, 0).has_value());
    EXPECT_FALSE(rooms.find(8, ~std::uint64_t{0}).has_value());
}

// The same by simple means: which piece each granule belongs to.
class model
{
public:
    explicit model(std::uint64_t length) : _owner(length / granule, 0) {}

    // Whether a piece fits at the offset.
    bool fits(std::uint64_t offset, std::uint64_t length) const
    {
        return offset + length <= _owner.size() * granule &&
               std::all_of(at(offset), at(offset + length), [](unsigned owner) { return owner == 0; });
    }
    bool fits_anywhere(std::uint64_t length) const
    {
        const std::uint64_t step = length < 64 ? 8 : 64;
        for (std::uint64_t offset = 0; offset + length <= _owner.size() * granule; offset += step) {
            if (fits(offset, length)) {
                return true;
            }
        }
        return false;
    }
    void take(std::uint64_t offset, std::uint64_t length)
    {
        ++_last;
        std::fill_n(_owner.begin() + static_cast<std::ptrdiff_t>(offset / granule), length / granule, _last);
        _pieces[offset] = length;
    }
    void give_back(std::uint64_t offset)
    {
        std::fill_n(_owner.begin() + static_cast<std::ptrdiff_t>(offset / granule), _pieces.at(offset) / granule, 0u);
        _pieces.erase(offset);
    }
    bool is_in_one_piece(std::uint64_t offset, std::uint64_t bytes) const
    {
        const std::uint64_t last = offset + (bytes == 0 ? 0 : bytes - 1);
        if (last >= _owner.size() * granule || _owner[offset / granule] == 0) {
            return false;
        }
        return std::all_of(at(offset), at(last) + 1, [&](unsigned owner) { return owner == _owner[offset / granule]; });
    }
    std::uint64_t free_bytes() const { return static_cast<std::uint64_t>(std::ranges::count(_owner, 0u)) * granule; }
    const std::map<std::uint64_t, std::uint64_t>& pieces() const { return _pieces; }

private:
    std::vector<unsigned>::const_iterator at(std::uint64_t offset) const
    {
        return _owner.begin() + static_cast<std::ptrdiff_t>(offset / granule);
    }

    std::vector<unsigned> _owner; // 0: nobody
    std::map<std::uint64_t, std::uint64_t> _pieces;
    unsigned _last = 0;
};

std::uint64_t random_bytes(random& from)
{
    return from.one_in(10) ? 1 + from.below(1500) : 1 + from.below(from.one_in(2) ? 16 : 200);
}

TEST(granule_allocator, does_what_a_simple_model_does)
{
    random from(run_seed());
    std::uint64_t refusals = 0;
    for (int round = 0; round < 40; ++round) {
        const std::uint64_t length = 8 * (1 + from.below(512));
        granule_allocator rooms(length);
        model expected(length);
        for (int step = 0; step < 1000; ++step) {
            if (from.below(100) < 55) {
                const std::uint64_t bytes = random_bytes(from);
                const bool has_room       = expected.fits_anywhere(granule_allocator::rounded(bytes));
                ASSERT_EQ(rooms.has_room(bytes), has_room) << bytes;
                const auto offset = rooms.take(bytes);
                ASSERT_EQ(offset.has_value(), has_room) << bytes;
                refusals += has_room ? 0 : 1;
                if (offset) {
                    ASSERT_TRUE(expected.fits(*offset, granule_allocator::rounded(bytes)));
                    ASSERT_EQ(*offset % (bytes > 56 ? 64 : 8), 0u);
                    expected.take(*offset, granule_allocator::rounded(bytes));
                }
            } else if (!expected.pieces().empty()) {
                auto chosen = expected.pieces().begin();
                std::advance(chosen, from.below(expected.pieces().size()));
                ASSERT_TRUE(rooms.give_back(chosen->first));
                expected.give_back(chosen->first);
            }
            const std::uint64_t offset = from.below(length + 8);
            const std::uint64_t bytes  = from.below(100);
            ASSERT_EQ(rooms.find(offset, bytes).has_value(), expected.is_in_one_piece(offset, bytes))
                << offset << " " << bytes;
            ASSERT_EQ(rooms.free_bytes(), expected.free_bytes());
            ASSERT_EQ(rooms.num_pieces(), expected.pieces().size());
        }
        while (!expected.pieces().empty()) {
            const std::uint64_t offset = expected.pieces().begin()->first;
            ASSERT_TRUE(rooms.give_back(offset));
            expected.give_back(offset);
        }
        ASSERT_EQ(rooms.take(length), 0u); // one gap again
    }
    EXPECT_GT(refusals, 100u);
}

TEST(granule_allocator, a_failed_allocation_of_memory_changes_nothing)
{
    granule_allocator rooms(256);
    ASSERT_EQ(rooms.take(8), 0u);
    const std::int64_t failed = fail_every_allocation([&] {
        try {
            const auto offset = rooms.take(64); // leaves a gap before and one behind
            return offset == 64u && rooms.give_back(*offset);
        } catch (const std::bad_alloc&) {
            return rooms.free_bytes() == 248 && rooms.num_pieces() == 1 && rooms.find(64, 1) == std::nullopt &&
                   rooms.has_room(192);
        }
    });
    EXPECT_GE(failed, 4);
    EXPECT_EQ(rooms.take(192), 64u);
}

} // namespace
} // namespace ucxl::test
